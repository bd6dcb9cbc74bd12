// Sessions with workers that are real servers in this process.
#include "router/membership/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "common/base/strings.h"
#include "tests/support/router_fixture.h"

namespace baton::router {
namespace {

using ::baton::testing::Eventually;
using ::baton::testing::MakeHello;
using ::baton::testing::ScriptedDecode;
using ::baton::testing::ScriptedPrefill;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MembershipTest : public ::testing::Test {
 protected:
  ~MembershipTest() override {
    if (members_ == nullptr) return;
    OnLoop([this] { members_->Stop(); });
    members_.reset();
  }

  void Start(MembershipOptions options) {
    options.link.router_epoch = RouterEpoch(42);
    options.link.router_id = "router-test";
    options.link.backoff = {std::chrono::milliseconds(1),
                            std::chrono::milliseconds(20)};
    options.link.hello_timeout = hello_timeout_;
    members_ = std::make_unique<Membership>(
        std::move(options), &loop_, [this](Event event) { Note(event); });
    OnLoop([this] { members_->Start(); });
  }

  void OnLoop(const std::function<void()>& task) {
    std::promise<void> done;
    loop_.Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  void Note(const Event& event) {
    std::lock_guard lock(mutex_);
    if (const auto* added = std::get_if<WorkerAdded>(&event)) {
      last_ = added->worker;
      log_.push_back("added");
    } else if (const auto* up = std::get_if<SessionUp>(&event)) {
      session_ = up->session;
      log_.push_back(StrCat("up ", up->hello.worker_id()));
    } else if (const auto* down = std::get_if<SessionDown>(&event)) {
      last_error_ = down->status;
      if (log_.empty() || log_.back() != "down") log_.push_back("down");
    } else if (std::holds_alternative<WorkerRemoved>(event)) {
      log_.push_back("removed");
    } else if (const auto* p = std::get_if<PrefillMessage>(&event)) {
      sequences_.push_back(p->event.sequence());
    } else if (const auto* d = std::get_if<DecodeMessage>(&event)) {
      sequences_.push_back(d->event.sequence());
    }
  }
  std::vector<std::string> log() {
    std::lock_guard lock(mutex_);
    return log_;
  }
  size_t messages() {
    std::lock_guard lock(mutex_);
    return sequences_.size();
  }

  // A loaded machine, or a sanitizer, may need long for the first call.
  Duration hello_timeout_ = std::chrono::seconds(10);
  EventLoop loop_{"test"};
  std::unique_ptr<Membership> members_;
  std::mutex mutex_;
  std::vector<std::string> log_;
  std::vector<uint64_t> sequences_;
  absl::Status last_error_;
  uint64_t session_ = 0;  // of the last that is up
  WorkerIndex last_;
};

TEST_F(MembershipTest, HelloThenNumberedEvents) {
  ScriptedPrefill worker(MakeHello("p", v1::WORKER_ROLE_PREFILL), nullptr);
  Start({.prefill = {worker.address()}});
  ASSERT_TRUE(Eventually([&] { return messages() == 1; }));
  EXPECT_THAT(log(), ElementsAre("added", "up p"));
  const auto hellos = worker.hellos();
  ASSERT_EQ(hellos.size(), 1u);
  EXPECT_EQ(hellos[0].protocol_min(), 1u);
  EXPECT_EQ(hellos[0].protocol_max(), 1u);
  EXPECT_EQ(hellos[0].router_epoch(), 42u);
  EXPECT_EQ(hellos[0].router_id(), "router-test");
  EXPECT_EQ(hellos[0].session(), session_);
  for (int i = 0; i < 50; ++i) worker.Grant(i);
  ASSERT_TRUE(Eventually([&] { return messages() == 51; }));
  for (size_t i = 0; i < sequences_.size(); ++i) {
    EXPECT_EQ(sequences_[i], i + 2);
  }
}

TEST_F(MembershipTest, CommandsArriveInOrder) {
  ScriptedDecode worker(MakeHello("d", v1::WORKER_ROLE_DECODE), nullptr);
  Start({.decode = {worker.address()}});
  ASSERT_TRUE(Eventually([&] { return messages() == 1; }));
  OnLoop([&] {
    for (uint64_t i = 1; i <= 100; ++i) {
      SendToDecode send{last_, {}};
      send.command.mutable_release()->set_attempt_id(i);
      members_->Send(std::move(send));
    }
  });
  ASSERT_TRUE(Eventually([&] { return worker.commands().size() == 100; }));
  const auto commands = worker.commands();
  for (uint64_t i = 1; i <= 100; ++i) {
    EXPECT_EQ(commands[i - 1].release().attempt_id(), i);
  }
}

TEST_F(MembershipTest, ReconnectsWithAHigherSessionNumber) {
  ScriptedDecode worker(MakeHello("d", v1::WORKER_ROLE_DECODE), nullptr);
  Start({.decode = {worker.address()}});
  ASSERT_TRUE(Eventually([&] { return messages() == 1; }));
  worker.DropSession();
  ASSERT_TRUE(Eventually([&] { return messages() == 2; }));
  EXPECT_THAT(log(), ElementsAre("added", "up d", "down", "up d"));
  const auto hellos = worker.hellos();
  ASSERT_EQ(hellos.size(), 2u);
  EXPECT_LT(hellos[0].session(), hellos[1].session());
  EXPECT_EQ(hellos[0].router_epoch(), hellos[1].router_epoch());
}

TEST_F(MembershipTest, WaitsForAWorkerThatIsNotThereYet) {
  auto first = std::make_unique<ScriptedDecode>(
      MakeHello("d", v1::WORKER_ROLE_DECODE), nullptr);
  const std::string address = first->address();
  first.reset();
  Start({.decode = {address}});
  ASSERT_TRUE(Eventually([&] { return log().size() >= 2; }));
  EXPECT_EQ(log()[1], "down");
  EXPECT_EQ(last_error_.code(), absl::StatusCode::kUnavailable);
  ScriptedDecode worker(MakeHello("d2", v1::WORKER_ROLE_DECODE), nullptr,
                        address);
  ASSERT_TRUE(Eventually([&] { return log().back() == "up d2"; }));
}

TEST_F(MembershipTest, AMuteWorkerTimesOut) {
  ScriptedDecode worker(MakeHello("d", v1::WORKER_ROLE_DECODE), nullptr);
  worker.SetMute(true);
  hello_timeout_ = std::chrono::milliseconds(200);
  Start({.decode = {worker.address()}});
  ASSERT_TRUE(Eventually([&] { return log().size() >= 2; }));
  EXPECT_EQ(last_error_.message(), "no hello in time");
  worker.SetMute(false);
  EXPECT_TRUE(Eventually([&] { return log().back() == "up d"; }));
}

TEST_F(MembershipTest, CloseRestartsTheSession) {
  ScriptedDecode worker(MakeHello("d", v1::WORKER_ROLE_DECODE), nullptr);
  Start({.decode = {worker.address()}});
  ASSERT_TRUE(Eventually([&] { return messages() == 1; }));
  OnLoop([&] { members_->Close({last_, "test"}); });
  ASSERT_TRUE(Eventually([&] { return messages() == 2; }));
  EXPECT_THAT(log(), ElementsAre("added", "up d", "down", "up d"));
  EXPECT_THAT(last_error_.message(), HasSubstr("test"));
}

TEST_F(MembershipTest, ServerCrashIsNoticedAtOnce) {
  ScriptedPrefill worker(MakeHello("p", v1::WORKER_ROLE_PREFILL), nullptr);
  Start({.prefill = {worker.address()}});
  ASSERT_TRUE(Eventually([&] { return messages() == 1; }));
  worker.Stop();
  EXPECT_TRUE(Eventually([&] { return log().back() == "down"; }));
}

TEST_F(MembershipTest, UnresolvableNamesAreTriedAgain) {
  Start({.decode = {"no-such-host.invalid:1"},
         .resolve_interval = std::chrono::milliseconds(1)});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(log().empty());
}

TEST_F(MembershipTest, AHeldWorkerIsLeftAloneUntilItIsOpened) {
  ScriptedDecode worker(MakeHello("d", v1::WORKER_ROLE_DECODE), nullptr);
  MembershipOptions options;
  options.decode = {worker.address()};
  Start(options);
  ASSERT_TRUE(Eventually([&] { return log().size() == 2; }));
  EXPECT_THAT(log(), ElementsAre("added", "up d"));
  OnLoop([&] { members_->Close({last_, "a twin", /*reopen=*/false}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(worker.hellos().size(), 1u) << "no reconnect";
  OnLoop([&] { members_->Send(SendToDecode{last_, v1::DecodeCommand()}); });
  OnLoop([&] { members_->Open({last_}); });
  EXPECT_TRUE(Eventually([&] { return worker.hellos().size() == 2; }));
  EXPECT_TRUE(Eventually([&] { return log().back() == "up d"; }));
  OnLoop([&] { members_->Open({last_}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(worker.hellos().size(), 2u) << "it is open already";
}

}  // namespace
}  // namespace baton::router
