#include "tests/fault/load_clients.h"

#include <random>

#include "absl/strings/str_cat.h"

namespace baton::testing {
namespace {

constexpr size_t kMostFailures = 50;
// What a call may take beyond its deadline.
constexpr auto kGrace = std::chrono::seconds(5);

}  // namespace

absl::StatusOr<std::unique_ptr<LoadClients>> LoadClients::Start(
    ProcessCluster* cluster, const Options& options) {
  auto clients =
      std::unique_ptr<LoadClients>(new LoadClients(cluster, options));
  std::mt19937_64 random(options.seed);
  for (int i = 0; i < options.requests; ++i) {
    Planned planned;
    // Short and long prompts and answers, one in four with two choices.
    planned.request =
        FixedRequest(1 + static_cast<int>(random() % 200),
                     4 + static_cast<int>(random() % 60), 100 + i);
    if (i % 4 == 3) planned.request.set_n(2);
    planned.answer = cluster->Generate(planned.request);
    if (!planned.answer.status.ok()) return planned.answer.status;
    clients->planned_.push_back(std::move(planned));
  }
  for (int i = 0; i < options.clients; ++i) {
    clients->threads_.emplace_back([c = clients.get(), i] { c->Run(i); });
  }
  return clients;
}

void LoadClients::Stop() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

LoadClients::Counts LoadClients::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

std::vector<std::string> LoadClients::failures() const {
  std::lock_guard lock(mutex_);
  return failures_;
}

void LoadClients::Run(int client) {
  std::mt19937_64 random(options_.seed * 1000 + static_cast<uint64_t>(client));
  while (!stop_) RunOne(random());
}

void LoadClients::RunOne(uint64_t random) {
  const Planned& planned = planned_[random % planned_.size()];
  random /= planned_.size();
  int router = static_cast<int>(random % 2);
  random /= 2;
  const bool cancel =
      static_cast<double>(random % 1000) < options_.cancel_share * 1000;
  random /= 1000;
  int events_left = static_cast<int>(random % 30);
  bool cancelled = false;
  const OnEvent on_event = [&](const v1::GenerateEvent&) {
    if (!cancel || events_left-- > 0) return true;
    cancelled = true;
    return false;
  };
  const MonotonicTime start = MonotonicNow();
  uint64_t changes = changes_[router];
  const auto changed = [&] {
    return changes % 2 == 1 || changes_[router] != changes;
  };
  Answer answer = RunRequest(cluster_->stub(router), planned.request, on_event,
                             options_.deadline);
  const bool cut_off = !cancelled && changed() &&
                       answer.status.code() == absl::StatusCode::kCancelled;
  // A router that is going says so before it takes a request: the other one
  // serves it.
  if ((answer.status.code() == absl::StatusCode::kUnavailable || cut_off) &&
      answer.events == 0) {
    router = 1 - router;
    changes = changes_[router];
    answer = RunRequest(cluster_->stub(router), planned.request, on_event,
                        options_.deadline);
    std::lock_guard lock(mutex_);
    ++counts_.redirected;
  }
  if (MonotonicNow() - start > 2 * options_.deadline + kGrace) {
    Fail("a request ended long after its deadline");
  }
  Judge(planned, answer, cancelled, changed());
}

void LoadClients::Judge(const Planned& planned, const Answer& answer,
                        bool cancelled, bool router_changed) {
  if (answer.status.ok()) {
    if (absl::Status same = SameAnswer(answer, planned.answer); !same.ok()) {
      return Fail(same.ToString());
    }
    std::lock_guard lock(mutex_);
    ++counts_.completed;
    counts_.replayed += answer.served.replays() > 0;
    return;
  }
  std::unique_lock lock(mutex_);
  if (cancelled && answer.status.code() == absl::StatusCode::kCancelled) {
    ++counts_.cancelled;
  } else if (router_changed &&
             answer.status.code() == absl::StatusCode::kUnavailable) {
    ++counts_.lost_with_router;
  } else {
    lock.unlock();
    Fail(absl::StrCat(answer.status.ToString(), " after ", answer.events,
                      " events"));
  }
}

void LoadClients::Fail(const std::string& what) {
  std::lock_guard lock(mutex_);
  if (failures_.size() < kMostFailures) failures_.push_back(what);
}

}  // namespace baton::testing
