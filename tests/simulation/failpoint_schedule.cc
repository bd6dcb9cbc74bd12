#include "tests/simulation/failpoint_schedule.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace baton::simulation {

FailpointSchedule::FailpointSchedule(const std::vector<FailpointHit>& hits,
                                     Monitor* monitor)
    : monitor_(monitor) {
  BATON_CHECK(failpoint_observer == nullptr);
  failpoint_observer = this;
  if (Points().empty()) return;
  for (const FailpointHit& hit : hits) {
    const Failpoint* point = Points()[hit.point % Points().size()];
    pending_.push_back({point, hit.after, hit.fails && point->can_fail});
  }
}

FailpointSchedule::~FailpointSchedule() { failpoint_observer = nullptr; }

bool FailpointSchedule::Reached(const Failpoint& point) {
  if (running_ == nullptr || running_->dead()) return false;
  monitor_->Count(point.name);
  for (auto it = pending_.begin(); it != pending_.end(); ++it) {
    if (it->point != &point || --it->left > 0) continue;
    const bool fails = it->fails;
    pending_.erase(it);
    monitor_->Count(StrCat(fails ? "failed at " : "died at ", point.name));
    if (!fails) running_->Die();
    return fails;
  }
  return false;
}

const std::vector<const Failpoint*>& FailpointSchedule::Points() {
  static const std::vector<const Failpoint*>* const points = [] {
    auto* sorted = new std::vector<const Failpoint*>(AllFailpoints());
    std::sort(sorted->begin(), sorted->end(),
              [](const Failpoint* a, const Failpoint* b) {
                return a->name < b->name;
              });
    return sorted;
  }();
  return *points;
}

}  // namespace baton::simulation
