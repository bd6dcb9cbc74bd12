#include "kv_transfer/transfer_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "kv_transfer/loopback/loopback_transport.h"
#include "tests/unit/kv_transfer/core_fixture.h"

namespace baton::transfer {
namespace {

using std::chrono::seconds;

// A thread with its events, which the test waits for.
class Worker {
 public:
  Worker(LoopbackHub* hub, uint64_t epoch, size_t max_landings = 4096)
      : epoch_(epoch) {
    TransferOptions options = TinyOptions(epoch);
    options.max_landings = max_landings;
    options.random = [this](absl::Span<std::byte> bytes) {
      std::lock_guard lock(random_mutex_);
      for (std::byte& b : bytes) b = static_cast<std::byte>(random_());
    };
    thread_ = std::make_unique<TransferThread>(
        hub->MakeTransport(), options, [this](std::vector<TransferEvent> more) {
          std::lock_guard lock(mutex_);
          for (TransferEvent& event : more) events_.push_back(std::move(event));
          arrived_.notify_all();
        });
  }

  TransferThread* operator->() { return thread_.get(); }
  void Stop() { thread_.reset(); }
  uint64_t epoch() const { return epoch_; }

  template <class Event>
  bool WaitFor(size_t count) {
    std::unique_lock lock(mutex_);
    return arrived_.wait_for(lock, seconds(60), [&] {
      return static_cast<size_t>(
                 std::ranges::count_if(events_, [](const TransferEvent& event) {
                   return std::holds_alternative<Event>(event);
                 })) >= count;
    });
  }
  std::vector<TransferEvent> events() {
    std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  uint64_t epoch_;
  std::mutex random_mutex_;
  std::mt19937_64 random_{epoch_};
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<TransferEvent> events_;
  std::unique_ptr<TransferThread> thread_;
};

constexpr uint32_t kBlocks = 5;
constexpr uint32_t kTokens = 16 * kBlocks;

void PushAll(Worker* holder, TransferId transfer, const TinyMemory& source) {
  for (uint32_t i = 0; i < kBlocks; ++i) {
    (*holder)->PushBlock(transfer, i, source.block(i), 16);
  }
  (*holder)->Seal(transfer, CoreFixture::SealOf(1));
}

TEST(TransferThreadTest, HandsOverManyAtOnce) {
  LoopbackHub hub;
  Worker receiver(&hub, 2);
  Worker holder(&hub, 1);
  EXPECT_EQ(holder->transport_name(), "loopback");
  constexpr int kTransfers = 50;
  const TinyMemory source(kBlocks, 1);
  std::vector<std::unique_ptr<TinyMemory>> targets;
  for (int i = 0; i < kTransfers; ++i) {
    targets.push_back(std::make_unique<TinyMemory>(kBlocks, 2 + i));
    const Ticket ticket = *receiver->OpenLanding(
        SpecFor(targets.back().get(), kTokens, 2, seconds(60)));
    const TransferId transfer =
        *holder->OpenTransfer(ticket, MonotonicNow() + seconds(60));
    PushAll(&holder, transfer, source);
  }
  ASSERT_TRUE(receiver.WaitFor<LandingVerified>(kTransfers));
  ASSERT_TRUE(holder.WaitFor<TransferAcked>(kTransfers));
  for (const auto& target : targets) EXPECT_TRUE(*target == source);
  EXPECT_EQ(holder->counters().frames_sent, kTransfers * kBlocks);
}

TEST(TransferThreadTest, RandomAbortsFromOtherThreadsEndOnce) {
  LoopbackHub hub;
  Worker receiver(&hub, 2);
  Worker holder(&hub, 1);
  constexpr int kThreads = 3;
  constexpr int kEach = 100;
  const TinyMemory source(kBlocks, 1);
  std::vector<std::unique_ptr<TinyMemory>> targets(kThreads * kEach);
  for (auto& target : targets) {
    target = std::make_unique<TinyMemory>(kBlocks, 3);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < kEach; ++i) {
        const auto ticket = receiver->OpenLanding(
            SpecFor(targets[t * kEach + i].get(), kTokens, 2, seconds(60)));
        const TransferId transfer =
            *holder->OpenTransfer(*ticket, MonotonicNow() + seconds(60));
        const uint32_t what = random() % 4;
        if (what == 0) holder->Abort(transfer);
        PushAll(&holder, transfer, source);
        if (what == 1) holder->Abort(transfer);
        if (what == 2) receiver->CancelLanding(LandingId(ticket->landing_id()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto endings = [](const std::vector<TransferEvent>& events) {
    std::map<uint64_t, int> count;
    for (const TransferEvent& event : events) {
      if (const auto* verified = std::get_if<LandingVerified>(&event)) {
        ++count[verified->landing.value()];
      } else if (const auto* closed = std::get_if<LandingClosed>(&event)) {
        ++count[closed->landing.value()];
      } else if (const auto* acked = std::get_if<TransferAcked>(&event)) {
        ++count[acked->transfer.value()];
      } else if (const auto* over = std::get_if<TransferClosed>(&event)) {
        ++count[over->transfer.value()];
      }
    }
    return count;
  };
  const MonotonicTime end = MonotonicNow() + seconds(60);
  while (MonotonicNow() < end &&
         (endings(receiver.events()).size() < targets.size() ||
          endings(holder.events()).size() < targets.size())) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (Worker* worker : {&receiver, &holder}) {
    const auto count = endings(worker->events());
    EXPECT_EQ(count.size(), targets.size());
    for (const auto& [id, times] : count) EXPECT_EQ(times, 1);
  }
}

TEST(TransferThreadTest, WrongArgumentsBecomeAFailure) {
  LoopbackHub hub;
  Worker receiver(&hub, 2);
  Worker holder(&hub, 1);
  TinyMemory target(kBlocks, 2);
  const TinyMemory source(kBlocks, 1);
  const Ticket ticket =
      *receiver->OpenLanding(SpecFor(&target, kTokens, 2, seconds(60)));
  const TransferId transfer =
      *holder->OpenTransfer(ticket, MonotonicNow() + seconds(60));
  holder->PushBlock(transfer, kBlocks, source.block(0), 16);
  ASSERT_TRUE(holder.WaitFor<TransferClosed>(1));
  const auto failed = std::get<TransferFailed>(holder.events().at(0));
  EXPECT_EQ(failed.status.message(), "ordinal: got 5, allowed 0..4");
  ASSERT_TRUE(receiver.WaitFor<LandingClosed>(1));
}

TEST(TransferThreadTest, RefusesAtOnceWhatCanBeKnownAtOnce) {
  LoopbackHub hub;
  Worker worker(&hub, 2, /*max_landings=*/2);
  TinyMemory target(kBlocks, 2);
  EXPECT_TRUE(absl::IsInvalidArgument(
      worker->OpenLanding(SpecFor(&target, 1, 2)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      worker->OpenTransfer(Ticket(), MonotonicNow()).status()));
  const auto spec = SpecFor(&target, kTokens, 2, seconds(60));
  const Ticket first = *worker->OpenLanding(spec);
  ASSERT_TRUE(worker->OpenLanding(spec).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(worker->OpenLanding(spec).status()));
  worker->CancelLanding(LandingId(first.landing_id()));
  ASSERT_TRUE(worker.WaitFor<LandingClosed>(1));
  EXPECT_TRUE(worker->OpenLanding(spec).ok());
}

TEST(TransferThreadTest, TimersRunWhileNothingElseDoes) {
  LoopbackHub hub;
  Worker worker(&hub, 2);
  TinyMemory target(kBlocks, 2);
  ASSERT_TRUE(worker
                  ->OpenLanding(SpecFor(&target, kTokens, 2,
                                        std::chrono::milliseconds(30)))
                  .ok());
  EXPECT_TRUE(worker.WaitFor<LandingClosed>(1));
}

TEST(TransferThreadTest, AHolderThatStopsFailsItsTransfers) {
  LoopbackHub hub;
  Worker receiver(&hub, 2);
  Worker holder(&hub, 1);
  TinyMemory target(kBlocks, 2);
  const TinyMemory source(kBlocks, 1);
  const Ticket ticket =
      *receiver->OpenLanding(SpecFor(&target, kTokens, 2, seconds(60)));
  const TransferId transfer =
      *holder->OpenTransfer(ticket, MonotonicNow() + seconds(60));
  holder->PushBlock(transfer, 0, source.block(0), 16);
  while (receiver->counters().frames_received == 0) std::this_thread::yield();
  holder.Stop();
  ASSERT_TRUE(receiver.WaitFor<LandingClosed>(1));
  EXPECT_TRUE(absl::IsUnavailable(
      std::get<LandingFailed>(receiver.events().at(0)).status));
}

}  // namespace
}  // namespace baton::transfer
