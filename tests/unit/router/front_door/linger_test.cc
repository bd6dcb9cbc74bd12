#include "router/front_door/linger.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <thread>

namespace baton::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

class LingerTest : public ::testing::Test {
 protected:
  LingerTest() {
    requests_.StartServing();
    requests_.Add(SIGTERM);
  }
  // Somebody calls all the time.
  uint64_t Busy() { return ++calls_; }

  ShutdownRequests requests_;
  std::atomic<uint64_t> calls_ = 0;
};

TEST_F(LingerTest, UntilNobodyCalls) {
  int looks = 0;
  LingerUntilQuiet([&] { return ++looks < 9 ? Busy() : 7; }, requests_,
                   {milliseconds(1), minutes(10)});
  EXPECT_GE(looks, 10);
}

TEST_F(LingerTest, NotForEver) {
  const MonotonicTime start = MonotonicNow();
  LingerUntilQuiet([&] { return Busy(); }, requests_,
                   {milliseconds(10), milliseconds(100)});
  EXPECT_GE(MonotonicNow() - start, milliseconds(100));
}

TEST_F(LingerTest, ASecondRequestEndsIt) {
  std::thread impatient([&] {
    while (calls_ < 5) std::this_thread::sleep_for(milliseconds(1));
    requests_.Add(SIGTERM);
  });
  LingerUntilQuiet([&] { return Busy(); }, requests_,
                   {milliseconds(1), minutes(10)});
  impatient.join();
  const uint64_t calls = calls_;
  LingerUntilQuiet([&] { return Busy(); }, requests_,
                   {minutes(10), minutes(10)});
  EXPECT_EQ(calls_, calls + 1) << "it had come before";
}

}  // namespace
}  // namespace baton::router
