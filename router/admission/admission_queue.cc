#include "router/admission/admission_queue.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/base/strings.h"
#include "common/rpc/status.h"

namespace baton::router {
namespace {

constexpr Duration kMinRetryDelay = std::chrono::milliseconds(100);
constexpr Duration kMaxRetryDelay = std::chrono::seconds(30);
// The cluster may become so much slower while a request waits, and the request
// still be in time.
constexpr double kHeadroom = 1.5;
// Work looked at for one estimate.
constexpr int kMaxCounted = 4096;

Duration TimeFor(uint64_t tokens, double rate) {
  const double seconds = static_cast<double>(tokens) / rate;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, 1e6)));
}

}  // namespace

void AdmissionQueue::Amount::Add(const Item& item) {
  ++items;
  tokens += item.tokens;
  bytes += item.bytes;
}

void AdmissionQueue::Amount::Subtract(const Item& item) {
  --items;
  tokens -= item.tokens;
  bytes -= item.bytes;
}

AdmissionQueue::AdmissionQueue(AdmissionLimits limits, uint64_t jitter_seed)
    : limits_(limits),
      jitter_(jitter_seed),
      counters_(limits.max_idle_tenants) {}

void AdmissionQueue::Charge(TenantId tenant, uint64_t tokens) {
  const uint64_t before = counters_.service(tenant);
  counters_.Charge(tenant, tokens);
  Reorder(tenant, before);
}

void AdmissionQueue::Refund(TenantId tenant, uint64_t tokens) {
  const uint64_t before = counters_.service(tenant);
  counters_.Refund(tenant, tokens);
  Reorder(tenant, before);
}

void AdmissionQueue::Reorder(TenantId tenant, uint64_t before) {
  for (auto& order : order_) {
    if (order.erase({before, tenant}) > 0) {
      order.emplace(counters_.service(tenant), tenant);
    }
  }
}

absl::Status AdmissionQueue::Admit(const Item& item, MonotonicTime now,
                                   std::vector<Item>* displaced) {
  if (absl::Status status = CheckRoom(item, now); !status.ok()) return status;
  if (!WhyFull(item, total_).empty()) {
    for (WorkId id : RoomFor(item)) displaced->push_back(Erase(id, now));
  }
  Insert(item, now);
  return absl::OkStatus();
}

absl::Status AdmissionQueue::CheckRoom(const Item& item, MonotonicTime now) {
  const std::string why = WhyFull(item, total_);
  if (why.empty() || !RoomFor(item).empty()) return absl::OkStatus();
  return Exhausted(why, now);
}

void AdmissionQueue::Return(const Item& item, MonotonicTime now) {
  Insert(item, now);
}

bool AdmissionQueue::Remove(WorkId id, MonotonicTime now) {
  if (!items_.contains(id)) return false;
  Erase(id, now);
  return true;
}

void AdmissionQueue::Take(WorkId id, MonotonicTime now) {
  counters_.RaiseFloor(LeastService());
  const Item item = Erase(id, now);
  Charge(item.tenant, item.tokens);
}

const AdmissionQueue::Item* AdmissionQueue::Pass::Next() {
  const AdmissionQueue& queue = *queue_;
  const uint64_t least = queue.LeastService();
  std::tuple<uint64_t, uint64_t, int> best{std::numeric_limits<uint64_t>::max(),
                                           0, 0};
  TenantId tenant;
  std::map<WorkKey, WorkId>::const_iterator work;
  for (int band = 0; band < kPriorityBands; ++band) {
    for (const auto& [service, candidate] : queue.order_[band]) {
      const auto& waiting = queue.waiting_.at(candidate).bands[band];
      const auto cursor = cursors_.find(Cursor(band, candidate));
      const auto next = cursor == cursors_.end()
                            ? waiting.begin()
                            : waiting.upper_bound(cursor->second);
      if (next == waiting.end()) continue;
      const uint64_t lowered =
          (service - least) / queue.limits_.priority_allowance;
      const uint64_t effective =
          std::min<uint64_t>(band + lowered, kPriorityBands - 1);
      if (std::tuple(effective, service, band) < best) {
        best = {effective, service, band};
        tenant = candidate;
        work = next;
      }
      break;
    }
  }
  if (tenant == TenantId()) return nullptr;
  cursors_[Cursor(std::get<2>(best), tenant)] = work->first;
  return &queue.items_.at(work->second);
}

std::vector<WorkId> AdmissionQueue::Ids() const {
  std::vector<WorkId> ids;
  ids.reserve(items_.size());
  for (const auto& [id, item] : items_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::optional<AdmissionQueue::Item> AdmissionQueue::PopExpired(
    MonotonicTime now) {
  const std::optional<WorkId> id = expiry_.PopDue(now);
  if (!id.has_value()) return std::nullopt;
  return Erase(*id, now);
}

absl::Status AdmissionQueue::CheckDeadline(const Item& item, Duration needed,
                                           MonotonicTime now) {
  if (item.deadline == kNever) return absl::OkStatus();
  const std::optional<double> rate = drain_.Rate(now);
  const auto own = waiting_.find(item.tenant);
  if (!rate.has_value() || own == waiting_.end()) return absl::OkStatus();
  const uint64_t ahead = TokensAhead(own->second, item);
  uint64_t others = 0;
  int counted = 0;
  for (const auto& [tenant, work] : waiting_) {
    if (tenant == item.tenant || ++counted > kMaxCounted) continue;
    others += std::min(work.total.tokens, ahead);
  }
  if (ahead == 0) return absl::OkStatus();
  const Duration wait = TimeFor(ahead + others, *rate);
  const Duration slow = TimeFor(ahead + others, *rate / kHeadroom);
  if (now + slow + needed < item.deadline) return absl::OkStatus();
  return Exhausted(
      StrCat("queue: the deadline might pass (", Seconds(wait), " s in it and ",
             Seconds(needed), " s after it are expected, ",
             Seconds(item.deadline - now), " s left)"),
      now);
}

uint64_t AdmissionQueue::TokensAhead(const TenantWork& own,
                                     const Item& item) const {
  uint64_t ahead = 0;
  for (int band = 0; band < item.priority; ++band) {
    ahead += own.band_tokens[band];
  }
  // Mostly few deadlines are later than that of the newest request.
  const auto& band = own.bands[item.priority];
  uint64_t same = own.band_tokens[item.priority];
  int counted = 0;
  for (auto it = band.rbegin(); it != band.rend(); ++it) {
    if (it->first < KeyOf(item)) break;
    if (++counted > kMaxCounted) return ahead;
    same -= items_.at(it->second).tokens;
  }
  return ahead + same;
}

absl::Status AdmissionQueue::DisplacedError(MonotonicTime now) {
  return Exhausted("queue: full, and others have had less of it", now);
}

absl::Status AdmissionQueue::ExpiredError(MonotonicTime now) {
  return Exhausted(StrCat("queue: no worker had room within ",
                          Seconds(limits_.max_age), " s"),
                   now);
}

std::optional<double> AdmissionQueue::DrainRate(MonotonicTime now) {
  const std::optional<double> seen = drain_.Rate(now);
  if (seen.has_value() || expected_rate_ <= 0) return seen;
  return expected_rate_;
}

Duration AdmissionQueue::RetryDelay(MonotonicTime now) {
  Duration delay = kMinRetryDelay;
  if (const std::optional<double> rate = DrainRate(now)) {
    delay = TimeFor(total_.tokens, *rate);
  } else if (expiry_.earliest() != kNever) {
    delay = now - (expiry_.earliest() - limits_.max_age);  // age of the oldest
  }
  return jitter_.Spread(std::clamp(delay, kMinRetryDelay, kMaxRetryDelay));
}

void AdmissionQueue::Insert(const Item& item, MonotonicTime now) {
  BATON_CHECK(item.priority >= 0 && item.priority < kPriorityBands);
  BATON_CHECK(items_.emplace(item.id, item).second);
  TenantWork& work = waiting_[item.tenant];
  if (work.total.items == 0) {
    if (total_.items > 0) counters_.RaiseFloor(LeastService());
    counters_.Lift(item.tenant);
  }
  by_share_.erase({ShareOf(work.total), item.tenant});
  work.total.Add(item);
  by_share_.emplace(ShareOf(work.total), item.tenant);
  work.bands[item.priority].emplace(KeyOf(item), item.id);
  work.band_tokens[item.priority] += item.tokens;
  order_[item.priority].emplace(counters_.service(item.tenant), item.tenant);
  ++band_sizes_[item.priority];
  total_.Add(item);
  if (item.may_expire) expiry_.Set(item.id, item.since + limits_.max_age);
  drain_.Waiting(true, now);
}

AdmissionQueue::Item AdmissionQueue::Erase(WorkId id, MonotonicTime now) {
  const Item item = items_.extract(id).mapped();
  TenantWork& work = waiting_.at(item.tenant);
  by_share_.erase({ShareOf(work.total), item.tenant});
  work.total.Subtract(item);
  auto& band = work.bands[item.priority];
  band.erase(KeyOf(item));
  work.band_tokens[item.priority] -= item.tokens;
  if (band.empty()) {
    order_[item.priority].erase({counters_.service(item.tenant), item.tenant});
  }
  if (work.total.items == 0) {
    waiting_.erase(item.tenant);
  } else {
    by_share_.emplace(ShareOf(work.total), item.tenant);
  }
  --band_sizes_[item.priority];
  total_.Subtract(item);
  expiry_.Remove(id);
  drain_.Waiting(!items_.empty(), now);
  return item;
}

double AdmissionQueue::ShareOf(const Amount& amount) const {
  const auto part = [](uint64_t used, uint64_t limit) {
    return static_cast<double>(used) / static_cast<double>(limit);
  };
  return std::max({part(amount.items, limits_.max_requests),
                   part(amount.tokens, limits_.max_tokens),
                   part(amount.bytes, limits_.max_bytes)});
}

std::string AdmissionQueue::WhyFull(const Item& item,
                                    const Amount& total) const {
  if (total.items >= limits_.max_requests) {
    return StrCat("queue: full (", total.items, " requests, allowed ",
                  limits_.max_requests, ")");
  }
  if (total.items == 0) return "";
  if (total.tokens + item.tokens > limits_.max_tokens) {
    return StrCat("queue: full (", total.tokens, " prompt tokens and ",
                  item.tokens, " more, allowed ", limits_.max_tokens, ")");
  }
  if (total.bytes + item.bytes > limits_.max_bytes) {
    return StrCat("queue: full (", total.bytes, " bytes and ", item.bytes,
                  " more, allowed ", limits_.max_bytes, ")");
  }
  return "";
}

std::vector<WorkId> AdmissionQueue::RoomFor(const Item& item) const {
  const TenantId largest = by_share_.rbegin()->second;
  const bool own = largest == item.tenant;
  Amount ours;
  if (const auto it = waiting_.find(item.tenant); it != waiting_.end()) {
    ours = it->second.total;
  }
  ours.Add(item);
  Amount theirs = waiting_.at(largest).total;
  Amount total = total_;
  std::vector<WorkId> victims;
  for (int band = kPriorityBands - 1; band >= 0; --band) {
    if (own && band <= item.priority) break;
    const auto& works = waiting_.at(largest).bands[band];
    for (auto it = works.rbegin(); it != works.rend(); ++it) {
      const Item& last = items_.at(it->second);
      if (!last.may_expire) continue;
      if (!own && ShareOf(theirs) <= ShareOf(ours)) return {};
      victims.push_back(last.id);
      theirs.Subtract(last);
      total.Subtract(last);
      if (WhyFull(item, total).empty()) return victims;
    }
  }
  return {};
}

uint64_t AdmissionQueue::LeastService() const {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const auto& order : order_) {
    if (!order.empty()) least = std::min(least, order.begin()->first);
  }
  return least;
}

absl::Status AdmissionQueue::Exhausted(std::string_view why,
                                       MonotonicTime now) {
  absl::Status status = absl::ResourceExhaustedError(ToAbsl(why));
  AddRetryInfo(&status, RetryDelay(now));
  return status;
}

}  // namespace baton::router
