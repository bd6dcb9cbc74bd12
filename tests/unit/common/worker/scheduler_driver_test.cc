#include "common/worker/scheduler_driver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <variant>
#include <vector>

namespace baton {
namespace {

struct Question {
  int value = 0;
};
struct Answer {
  int value = 0;
};

// Asks to double what it is told, and to be ticked once.
class ToyScheduler {
 public:
  using Event = std::variant<Question, Answer, Tick>;
  using Action = Question;

  std::vector<Action> Handle(Event event, MonotonicTime now) {
    if (auto* question = std::get_if<Question>(&event)) {
      log.push_back(question->value);
      return {{question->value}, {question->value + 1}};
    }
    if (auto* answer = std::get_if<Answer>(&event)) {
      log.push_back(answer->value);
      tick_at = now + std::chrono::milliseconds(1);
    } else {
      ticked = true;
      ++ticks;
      tick_at = kNever;
    }
    return {};
  }
  MonotonicTime NextDeadline() const { return tick_at; }

  std::vector<int> log;
  bool ticked = false;
  int ticks = 0;
  MonotonicTime tick_at = kNever;
};

TEST(SchedulerDriver, AnswersComeAfterTheActionsOfTheirEvent) {
  std::vector<int> executed;
  std::atomic<int> afters = 0;
  SchedulerDriver<ToyScheduler>* self = nullptr;
  SchedulerDriver<ToyScheduler> driver(
      "toy", ToyScheduler(),
      [&](Question action) {
        executed.push_back(action.value);
        self->Feed(Answer{action.value * 100});
      },
      [&](const ToyScheduler&) { ++afters; });
  self = &driver;
  driver.Post(Question{1});
  driver.Post(Question{5});
  EXPECT_EQ(driver.Ask([](const ToyScheduler& s) { return s.log; }),
            (std::vector<int>{1, 100, 200, 5, 500, 600}));
  EXPECT_EQ(executed, (std::vector<int>{1, 2, 5, 6}));
  // Once per event posted and once per tick, of which there may be some.
  EXPECT_EQ(driver.Ask([&](const ToyScheduler& s) { return afters - s.ticks; }),
            2);
  while (!driver.Ask([](const ToyScheduler& s) { return s.ticked; })) {
  }
  driver.Stop();
}

TEST(SchedulerDriver, ALoopThatDoesNotMoveIsNotWaitedForLong) {
  std::promise<void> go_on;
  SchedulerDriver<ToyScheduler> driver(
      "toy", ToyScheduler(),
      [waiting = go_on.get_future().share()](Question) { waiting.wait(); },
      [](const ToyScheduler&) {});
  std::atomic<int> reads = 0;
  const auto read = [&reads](const ToyScheduler& s) {
    ++reads;
    return s.log.size();
  };
  EXPECT_EQ(driver.AskFor(read, std::chrono::minutes(1)), 0u);
  driver.Post(Question{1});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(driver.AskFor(read, std::chrono::microseconds(50)), std::nullopt);
  }
  go_on.set_value();
  driver.Ask([](const ToyScheduler&) { return 0; });
  EXPECT_EQ(reads, 1 + 64) << "no more questions than that wait for the loop";
  while (!driver.AskFor(read, std::chrono::milliseconds(50)).has_value()) {
  }
  EXPECT_EQ(driver.AskFor(read, std::chrono::minutes(1)), 1u);
  driver.Stop();
}

}  // namespace
}  // namespace baton
