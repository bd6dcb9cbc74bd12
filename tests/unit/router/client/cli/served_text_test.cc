#include "router/client/cli/served_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace baton::cli {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

TEST(HumanBytesTest, PicksTheUnit) {
  EXPECT_EQ(HumanBytes(12), "12 B");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanBytes(11'796'480), "11.2 MiB");
  EXPECT_EQ(HumanBytes(uint64_t{5} << 50), "5120.0 TiB");
}

TEST(FormatServedTest, NamesThePairThePhasesAndWhatMoved) {
  v1::Served served;
  served.set_prefill_worker("prefill-0");
  served.set_decode_worker("decode-1");
  served.set_reason("least loaded");
  served.set_transport("ucx");
  served.set_queue_ms(0.25);
  served.set_prefill_ms(812.5);
  served.set_transfer_ms(4);
  served.set_decode_ms(512);
  served.set_kv_blocks_moved(32);
  served.set_kv_bytes_moved(11'796'480);
  served.set_prefill_chunks(3);
  served.set_replays(1);
  v1::Usage usage;
  usage.set_prompt_tokens(512);
  usage.set_cached_prompt_tokens(64);
  usage.set_completion_tokens(11);
  EXPECT_EQ(
      FormatServed(served, usage, {milliseconds(820), milliseconds(1320)}),
      "served by  prefill-0 -> decode-1 over ucx (least loaded)\n"
      "phases     queue 0.2 ms, prefill 812.5 ms, transfer 4.0 ms, "
      "decode 512.0 ms; first token after 820.0 ms\n"
      "moved      32 KV blocks, 11.2 MiB, in 3 chunks\n"
      "tokens     512 in (64 cached), 11 out, 20.0 tokens/s, replayed 1 "
      "times\n");
}

TEST(FormatServedTest, TellsWhatGuessesSaved) {
  v1::Served served;
  served.set_decode_steps(4);
  served.set_drafted_tokens(9);
  served.set_accepted_tokens(7);
  EXPECT_THAT(FormatServed(served, {}, {}),
              HasSubstr("0 out, 7 of 9 guesses right, 4 steps\n"));
}

TEST(FormatServedTest, OneWorkerAloneMovesNothing) {
  v1::Served served;
  served.set_decode_worker("decode-0");
  const std::string alone = FormatServed(served, {}, {});
  EXPECT_THAT(alone, HasSubstr("served by  decode-0 alone\n"));
  EXPECT_THAT(alone, Not(HasSubstr("moved")));
  served.Clear();
  served.set_prefill_worker("prefill-0");
  EXPECT_THAT(FormatServed(served, {}, {}),
              HasSubstr("prefill-0, ended at its first token"));
}

TEST(FormatServedTest, NamesCannotDriveTheTerminal) {
  v1::Served served;
  served.set_decode_worker("d\x1b[2J");
  EXPECT_THAT(FormatServed(served, {}, {}), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace baton::cli
