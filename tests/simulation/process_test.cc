#include "tests/simulation/process.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simulation/sim_stream.h"

namespace baton::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Keeps what happens to it, with its own time.
class Diary : public Process {
 public:
  Diary(
      Environment environment, std::function<void()> on_death = [] {})
      : Process(environment, Random(1), "diary", std::move(on_death)),
        thread_(this, milliseconds(1)),
        alarm_(this, [this] { Write("rings"); }) {}

  void Post(std::string what) {
    thread_.Post([this, what] { Write(what); });
  }
  void PostDeath() {
    thread_.Post([this] {
      Die();
      survived = Surviving(10);
    });
  }
  void WakeAt(MonotonicTime when) { alarm_.Set(when); }
  void Write(std::string what) {
    pages.emplace_back(std::move(what), environment_.events->now());
  }
  std::vector<std::string> Words() const {
    std::vector<std::string> words;
    for (const auto& [what, when] : pages) words.push_back(what);
    return words;
  }

  std::vector<std::pair<std::string, MonotonicTime>> pages;
  size_t survived = 0;

 private:
  void OnClockJump() override { alarm_.Reconsider(); }

  Thread thread_;
  Alarm alarm_;
};

class ProcessTest : public ::testing::Test {
 protected:
  void RunFor(Duration time) {
    bool over = false;
    events_.After(time, [&] { over = true; });
    while (!over && events_.RunNext()) {
    }
  }

  EventQueue events_{7};
  Monitor monitor_{&events_, false};
  Partitions partitions_;
  FailpointSchedule failpoints_{{}, &monitor_};
  Environment environment_{&events_, nullptr, &monitor_, &partitions_,
                           &failpoints_};
  const MonotonicTime start_ = events_.now();
};

TEST_F(ProcessTest, AFrozenProcessDoesEverythingLaterInOrder) {
  Diary diary(environment_);
  diary.FreezeUntil(start_ + seconds(5));
  for (const char* what : {"a", "b", "c", "d"}) diary.Post(what);
  RunFor(seconds(4));
  EXPECT_TRUE(diary.pages.empty());
  RunFor(seconds(2));
  EXPECT_EQ(diary.Words(), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_GE(diary.pages.front().second, start_ + seconds(5));
}

TEST_F(ProcessTest, AnAlarmRingsByTheClockOfItsProcess) {
  Diary ahead(environment_), behind(environment_);
  ahead.WakeAt(start_ + seconds(10));
  behind.WakeAt(start_ + seconds(10));
  RunFor(seconds(1));
  ahead.JumpClock(seconds(4));
  behind.Suspend(seconds(4));
  EXPECT_TRUE(behind.frozen());
  RunFor(seconds(20));
  ASSERT_EQ(ahead.pages.size(), 1u);
  ASSERT_EQ(behind.pages.size(), 1u);
  EXPECT_EQ(ahead.pages.front().second, start_ + seconds(6));
  EXPECT_EQ(behind.pages.front().second, start_ + seconds(14));
}

TEST_F(ProcessTest, AJumpPastTheAlarmRingsAtOnceAndOnce) {
  Diary diary(environment_);
  diary.WakeAt(start_ + seconds(10));
  diary.JumpClock(std::chrono::hours(1));
  RunFor(seconds(30));
  ASSERT_EQ(diary.pages.size(), 1u);
  EXPECT_EQ(diary.pages.front().second, start_);
}

TEST_F(ProcessTest, NothingHappensAfterDeath) {
  int deaths = 0;
  Diary diary(environment_, [&] { ++deaths; });
  diary.WakeAt(start_ + seconds(1));
  diary.Post("before");
  diary.PostDeath();
  diary.Post("after");
  RunFor(seconds(5));
  EXPECT_EQ(diary.Words(), std::vector<std::string>{"before"});
  EXPECT_TRUE(diary.dead());
  EXPECT_LE(diary.survived, 10u);
  EXPECT_EQ(deaths, 1);
}

class StreamTest : public ProcessTest {
 protected:
  using Stream = SimStream<int, int>;

  void SetUp() override {
    stream_ = std::make_shared<Stream>(&events_, &partitions_, Random(3),
                                       StreamDelays{}, "router", "worker");
    stream_->router().on_message = [this](int m) { at_router_.push_back(m); };
    stream_->worker().on_message = [this](int m) { at_worker_.push_back(m); };
    stream_->router().on_closed = [this] { router_closed_ = true; };
    stream_->worker().on_closed = [this] { worker_closed_ = true; };
  }

  std::shared_ptr<Stream> stream_;
  std::vector<int> at_router_, at_worker_;
  bool router_closed_ = false, worker_closed_ = false;
};

TEST_F(StreamTest, APartitionHoldsUpOneDirectionAndLosesNothing) {
  stream_->SendToWorker(1);
  RunFor(milliseconds(10));
  partitions_.Block("router", "worker", events_.now() + seconds(2));
  for (int i = 2; i <= 20; ++i) stream_->SendToWorker(i);
  stream_->SendToRouter(7);
  RunFor(seconds(1));
  EXPECT_EQ(at_worker_, std::vector<int>{1});
  EXPECT_EQ(at_router_, std::vector<int>{7});
  RunFor(milliseconds(1000));
  for (int i = 21; i <= 30; ++i) stream_->SendToWorker(i);
  RunFor(seconds(1));
  std::vector<int> all;
  for (int i = 1; i <= 30; ++i) all.push_back(i);
  EXPECT_EQ(at_worker_, all);
}

TEST_F(StreamTest, NewsOfACloseDoNotPassAPartition) {
  partitions_.Block("router", "", events_.now() + seconds(2));
  stream_->CloseByRouter();
  RunFor(seconds(1));
  EXPECT_FALSE(worker_closed_);
  RunFor(seconds(2));
  EXPECT_TRUE(worker_closed_);
  EXPECT_FALSE(router_closed_);
}

TEST_F(StreamTest, ABreakIsNoticedByBothEndsInTheirOwnTime) {
  partitions_.Block("", "", events_.now() + seconds(60));
  stream_->Break();
  RunFor(seconds(3));
  EXPECT_TRUE(worker_closed_);
  EXPECT_TRUE(router_closed_);
  stream_->SendToWorker(1);
  RunFor(seconds(1));
  EXPECT_TRUE(at_worker_.empty());
}

}  // namespace
}  // namespace baton::simulation
