#include "router/client/cli/served_text.h"

#include "absl/strings/str_format.h"
#include "common/base/strings.h"
#include "router/client/cli/terminal.h"

namespace baton::cli {
namespace {

std::string Route(const v1::Served& served) {
  const std::string& prefill = served.prefill_worker();
  const std::string& decode = served.decode_worker();
  if (decode.empty()) return StrCat(prefill, ", ended at its first token");
  if (prefill.empty()) return StrCat(decode, " alone");
  std::string route = StrCat(prefill, " -> ", decode);
  if (!served.transport().empty()) {
    StrAppend(&route, " over ", served.transport());
  }
  return route;
}

}  // namespace

std::string HumanBytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return StrCat(bytes, " B");
  double amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; amount >= 1024 && unit < 3; ++unit) amount /= 1024;
  return absl::StrFormat("%.1f %s", amount, kUnits[unit]);
}

std::string FormatServed(const v1::Served& served, const v1::Usage& usage,
                         const ClientTimes& times) {
  std::string text = StrCat("served by  ", Printable(Route(served)));
  if (!served.reason().empty()) {
    StrAppend(&text, " (", Printable(served.reason()), ")");
  }
  absl::StrAppendFormat(
      &text,
      "\nphases     queue %.1f ms, prefill %.1f ms, transfer %.1f ms, decode "
      "%.1f ms; first token after %.1f ms",
      served.queue_ms(), served.prefill_ms(), served.transfer_ms(),
      served.decode_ms(), Milliseconds(times.first_token));
  if (served.kv_blocks_moved() > 0) {
    absl::StrAppendFormat(&text, "\nmoved      %d KV blocks, %s",
                          served.kv_blocks_moved(),
                          HumanBytes(served.kv_bytes_moved()));
    if (served.prefill_chunks() > 1) {
      StrAppend(&text, ", in ", served.prefill_chunks(), " chunks");
    }
  }
  absl::StrAppendFormat(&text, "\ntokens     %d in (%d cached), %d out",
                        usage.prompt_tokens(), usage.cached_prompt_tokens(),
                        usage.completion_tokens());
  const Duration decoding = times.total - times.first_token;
  if (usage.completion_tokens() > 1 && decoding > Duration::zero()) {
    absl::StrAppendFormat(&text, ", %.1f tokens/s",
                          (usage.completion_tokens() - 1) / Seconds(decoding));
  }
  if (served.drafted_tokens() > 0) {
    StrAppend(&text, ", ", served.accepted_tokens(), " of ",
              served.drafted_tokens(), " guesses right, ",
              served.decode_steps(), " steps");
  }
  if (served.replays() > 0) {
    StrAppend(&text, ", replayed ", served.replays(), " times");
  }
  return text + "\n";
}

}  // namespace baton::cli
