// Random operations on a landing table against a model that is obvious.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "kv_transfer/landing_table.h"
#include "tests/unit/kv_transfer/core_fixture.h"

namespace baton::transfer {
namespace {

constexpr uint32_t kBlocks = 3;
constexpr uint32_t kTokens = 40;

// One landing as the model sees it.
struct Expected {
  TransferTerms terms;
  std::unique_ptr<TinyMemory> memory;
  LandingState state = LandingState::kReserved;
  LinkId link;
  std::map<uint32_t, bool> blocks;  // posted ones; true: verified
  uint32_t outstanding = 0;
  bool sealed = false;
  bool holder_finished = false;
  MonotonicTime deadline{};

  bool complete() const {
    return sealed && blocks.size() == kBlocks &&
           std::ranges::all_of(blocks, [](const auto& b) { return b.second; });
  }
};

class TableModel {
 public:
  explicit TableModel(uint32_t seed)
      : random_(seed), options_(TinyOptions(2)), table_(&options_) {}

  void Step() {
    now_ += std::chrono::milliseconds(random_() % 50);
    if (expected_.size() < 6 && OneIn(6)) Add();
    if (expected_.empty()) return;
    auto it = std::next(expected_.begin(), random_() % expected_.size());
    Landing* landing = table_.Find(it->first);
    ASSERT_NE(landing, nullptr);
    switch (random_() % 9) {
      case 0:
        Redeem(&it->second);
        break;
      case 1:
      case 2:
        Post(landing, &it->second);
        break;
      case 3:
      case 4:
        Complete(landing, &it->second);
        break;
      case 5:
        Seal(landing, &it->second);
        break;
      case 6:
        Finish(landing, &it->second);
        break;
      case 7:
        if (OneIn(4)) CloseLink(it->second.link);
        break;
      case 8:
        if (OneIn(3)) PopDue();
        break;
    }
    EndWhatIsOver();
    Compare();
  }

 private:
  bool OneIn(uint32_t n) { return random_() % n == 0; }

  void Add() {
    Expected e;
    e.memory = std::make_unique<TinyMemory>(kBlocks, random_());
    const LandingSpec spec = SpecFor(e.memory.get(), kTokens, 2);
    const Ticket ticket = IssueTicket(spec, options_, "fake", "here");
    e.terms = *CheckTicket(ticket, options_, "fake");
    e.terms.key.transfer = TransferId(random_() % 5 + 1);
    e.deadline = now_ + std::chrono::milliseconds(random_() % 2000);
    e.link = LinkId(random_() % 3 + 1);
    table_.Add(ticket, spec, e.deadline);
    expected_.emplace(e.terms.key.landing, std::move(e));
  }

  void Redeem(Expected* e) {
    TransferKey key = e->terms.key;
    Begin begin = e->terms.begin;
    const uint32_t wrong = random_() % 5;
    absl::StatusCode code = absl::StatusCode::kOk;
    if (wrong == 0) {
      key.nonce[random_() % kNonceBytes] ^= std::byte{1};
      code = absl::StatusCode::kNotFound;
    } else if (wrong == 1) {
      begin.epoch = WorkerEpoch(3);
      code = absl::StatusCode::kFailedPrecondition;
    } else if (wrong == 2) {
      key.transfer = TransferId(99);
      // Another holder's number is as good as any for a ticket unused.
      if (e->state == LandingState::kReserved) return;
      code = absl::StatusCode::kAlreadyExists;
    } else if (wrong == 3 && e->state == LandingState::kReserved) {
      begin.token_count += 16;
      code = absl::StatusCode::kInvalidArgument;
    }
    const auto redeemed = table_.Redeem(e->link, key, begin, now_);
    ASSERT_EQ(redeemed.status().code(), code) << redeemed.status();
    if (!redeemed.ok()) return;
    EXPECT_EQ(*redeemed != nullptr, e->state == LandingState::kReserved);
    if (*redeemed != nullptr) e->state = LandingState::kReceiving;
  }

  void Post(Landing* landing, Expected* e) {
    if (e->state != LandingState::kReceiving) return;
    const uint32_t ordinal = random_() % (kBlocks + 1);
    const uint32_t written = ordinal + 1 < kBlocks ? 16 : 8;
    const bool copy = e->blocks.contains(ordinal);
    const bool breach = ordinal == kBlocks || (copy && OneIn(2));
    const Frame frame{copy && breach ? ordinal + 100 : ordinal, ordinal, 0, 2,
                      written};
    const auto place = landing->PostFrame(frame, kTinyLayout.block_bytes());
    ASSERT_EQ(place.ok(), !breach);
    if (breach || copy) {
      EXPECT_TRUE(!place.ok() || place->empty());
      return;
    }
    EXPECT_EQ(place->data(), e->memory->block(ordinal).data());
    e->blocks[ordinal] = false;
    ++e->outstanding;
  }

  // The receive of some posted block ends; it is looked at if the landing is
  // still receiving.
  void Complete(Landing* landing, Expected* e) {
    auto it = std::ranges::find_if(e->blocks,
                                   [](const auto& b) { return !b.second; });
    if (it == e->blocks.end() || e->outstanding == 0) return;
    landing->ReceiveEnded();
    --e->outstanding;
    if (e->state != LandingState::kReceiving) {
      e->blocks.erase(it);
      return;
    }
    const uint32_t ordinal = it->first;
    landing->FrameVerified({ordinal, ordinal, 0, 2, 16},
                           kTinyLayout.block_bytes());
    it->second = true;
  }

  void Seal(Landing* landing, Expected* e) {
    if (e->state == LandingState::kReceiving) {
      const bool wrong = !e->sealed && OneIn(3);
      const auto place =
          landing->PostSeal(SealMark{wrong ? kBlocks + 1 : kBlocks}, 0);
      ASSERT_EQ(place.ok(), !wrong);
      e->sealed |= !wrong;
    }
    const bool verified = e->state == LandingState::kReceiving && e->complete();
    ASSERT_EQ(landing->TryVerify(), verified);
    if (verified) e->state = LandingState::kVerified;
  }

  void Finish(Landing* landing, Expected* e) {
    if (e->state == LandingState::kReceiving && OneIn(2)) {
      landing->GiveUp();
      e->state = LandingState::kQuarantine;
    } else if (e->state == LandingState::kQuarantine) {
      landing->HolderFinished();
      e->holder_finished = true;
    }
  }

  void CloseLink(LinkId link) {
    std::set<LandingId> on_link;
    for (const auto& [id, e] : expected_) {
      if (e.link == link && e.state != LandingState::kReserved) {
        on_link.insert(id);
      }
    }
    const auto ids = table_.OnLink(link);
    EXPECT_EQ(std::set<LandingId>(ids.begin(), ids.end()), on_link);
    for (const LandingId id : ids) Remove(id);
  }

  void PopDue() {
    while (Landing* due = table_.PopDue(now_)) {
      Expected& e = expected_.at(due->id());
      EXPECT_LE(e.deadline, now_);
      e.deadline = kNever;
      if (e.state == LandingState::kReserved) {
        Remove(due->id());
      } else if (e.state == LandingState::kReceiving) {
        due->GiveUp();
        e.state = LandingState::kQuarantine;
        e.deadline = now_ + std::chrono::milliseconds(300);
        table_.SetDeadline(due->id(), e.deadline);
      }
    }
    for (const auto& [id, e] : expected_) EXPECT_GT(e.deadline, now_);
  }

  void Remove(LandingId id) {
    table_.Remove(id);
    expected_.erase(id);
  }

  void EndWhatIsOver() {
    std::vector<LandingId> over;
    for (const auto& [id, e] : expected_) {
      const bool quarantine_ends = e.state == LandingState::kQuarantine &&
                                   e.holder_finished && e.outstanding == 0;
      if (e.state == LandingState::kVerified || quarantine_ends) {
        EXPECT_EQ(table_.Find(id)->over(), quarantine_ends);
        over.push_back(id);
      }
    }
    for (const LandingId id : over) Remove(id);
  }

  void Compare() {
    ASSERT_EQ(table_.size(), expected_.size());
    MonotonicTime next = kNever;
    for (const auto& [id, e] : expected_) {
      Landing* landing = table_.Find(id);
      ASSERT_NE(landing, nullptr);
      EXPECT_EQ(landing->state(), e.state);
      EXPECT_EQ(landing->quiet(), e.outstanding == 0);
      const bool begun = e.state != LandingState::kReserved;
      EXPECT_EQ(table_.Find(e.link, e.terms.key) == landing, begun);
      TransferKey other = e.terms.key;
      other.nonce[3] ^= std::byte{0x40};
      EXPECT_EQ(table_.Find(e.link, other), nullptr);
      EXPECT_EQ(table_.Find(LinkId(77), e.terms.key), nullptr);
      EXPECT_FALSE(begun && landing->over()) << "left in the table";
      next = std::min(next, e.deadline);
    }
    EXPECT_EQ(table_.NextDeadline(), next);
  }

  std::mt19937 random_;
  TransferOptions options_;
  LandingTable table_;
  std::map<LandingId, Expected> expected_;
  MonotonicTime now_{std::chrono::hours(1)};
};

class LandingTablePropertyTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(LandingTablePropertyTest, AgreesWithTheModel) {
  TableModel model(GetParam());
  for (int step = 0; step < 2000; ++step) {
    model.Step();
    ASSERT_FALSE(HasFailure()) << "seed " << GetParam() << " step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LandingTablePropertyTest,
                         ::testing::Range<uint32_t>(0, 40));

}  // namespace
}  // namespace baton::transfer
