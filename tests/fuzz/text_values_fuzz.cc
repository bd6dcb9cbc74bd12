// Everything small that is read from text: sizes, durations, addresses, UTF-8,
// ready files, API tokens, headers. What is understood is written back and
// understood the same.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/host_port.h"
#include "common/base/ready_file.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/config/config_values.h"
#include "kv_transfer/ucx/ucx_address.h"
#include "router/credentials/api_tokens.h"
#include "router/front_door/call_metadata.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/memory_file.h"

namespace baton {
namespace {

using fuzz::FuzzInput;

template <class T>
bool Good(const absl::StatusOr<T>& result) {
  if (result.ok()) return true;
  BATON_CHECK(absl::IsInvalidArgument(result.status()));
  // Names what is wanted, and never repeats megabytes of what was given.
  BATON_CHECK(!result.status().message().empty());
  BATON_CHECK(result.status().message().size() < 1000);
  return false;
}

void CheckNumbers(std::string_view text) {
  const auto bytes = ParseByteSize(text);
  if (Good(bytes))
    BATON_CHECK(*ParseByteSize(FormatByteSize(*bytes)) == *bytes);
  const auto time = ParseDuration(text);
  if (Good(time)) {
    BATON_CHECK(*time >= Duration::zero());
    BATON_CHECK(*ParseDuration(FormatDuration(*time)) == *time);
  }
}

void CheckAddresses(std::string_view text) {
  const auto one = ParseHostPort(text);
  if (Good(one)) {
    BATON_CHECK(!one->host.empty());
    BATON_CHECK(*ParseHostPort(one->ToString()) == *one);
    IsLoopback(one->host);
  }
  const auto list = ParseHostPortList(text);
  if (Good(list)) {
    std::set<std::string> seen;
    std::string joined;
    for (const std::string& item : *list) {
      BATON_CHECK(seen.insert(item).second);
      StrAppend(&joined, joined.empty() ? "" : ",", item);
    }
    BATON_CHECK(*ParseHostPortList(joined) == *list);
  }
  const auto ucx = transfer::ParseUcxAddress(text);
  if (Good(ucx)) {
    const std::string written = transfer::FormatUcxAddress(ucx->get());
    const auto again = transfer::ParseUcxAddress(written);
    BATON_CHECK(again.ok() && again->length == ucx->length);
    BATON_CHECK(transfer::FormatUcxAddress(again->get()) == written);
  }
  BATON_CHECK(ClosestName(text, {"threads", "kv-pool"}).size() < 10);
}

void CheckUtf8(std::string_view text) {
  const std::string replaced = ReplaceInvalidUtf8(text);
  BATON_CHECK(!FindInvalidUtf8(replaced).has_value());
  BATON_CHECK(ReplaceInvalidUtf8(replaced) == replaced);
  const std::optional<size_t> invalid = FindInvalidUtf8(text);
  if (!invalid.has_value()) {
    BATON_CHECK(replaced == text);
  } else {
    BATON_CHECK(*invalid < text.size());
    BATON_CHECK(!FindInvalidUtf8(text.substr(0, *invalid)).has_value());
    BATON_CHECK(replaced.substr(0, *invalid) == text.substr(0, *invalid));
  }
  std::string rebuilt;
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Prefix prefix = ScanUtf8(rest);
    BATON_CHECK(prefix.length >= 1 && prefix.length <= 4);
    BATON_CHECK(prefix.length <= rest.size());
    if (prefix.kind == Utf8Prefix::Kind::kCodePoint) {
      AppendUtf8(prefix.code_point, &rebuilt);
    } else {
      rebuilt += kReplacementCharacter;
    }
    rest.remove_prefix(prefix.length);
  }
  BATON_CHECK(rebuilt == replaced);
}

std::string AsJson(const ReadyFields& fields) {
  std::string text = "{";
  for (const auto& [key, value] : fields) {
    StrAppend(&text, text.size() > 1 ? ", " : "", JsonQuote(key), ": ",
              JsonQuote(value));
  }
  return text + "}\n";
}

void CheckReadyFile(std::string_view text) {
  const auto fields = ReadReadyFile(fuzz::MemoryFile(text).path());
  if (!fields.ok()) {
    BATON_CHECK(absl::IsDataLoss(fields.status()));
    return;
  }
  BATON_CHECK(*ReadReadyFile(fuzz::MemoryFile(AsJson(*fields)).path()) ==
              *fields);
}

void CheckCredentials(std::string_view text) {
  const auto tokens = router::ApiTokens::Parse(text, "tokens");
  if (Good(tokens)) {
    BATON_CHECK(tokens->size() > 0);
  } else {
    BATON_CHECK(tokens.status().message().find("tokens:") == 0);
  }
  if (router::CheckTenantName(text).ok()) {
    const auto made = router::MakeApiToken(text);
    const auto own = router::ApiTokens::Parse(made->line, "tokens");
    BATON_CHECK(own.ok() && own->TenantOf(made->token) == text);
    BATON_CHECK(!own->TenantOf(text).has_value());
  }
  const std::string_view bearer = router::BearerToken(text);
  BATON_CHECK(bearer.empty() || text.find(bearer) != std::string_view::npos);
}

void CheckHeaders(std::string_view text) {
  if (const auto label = router::AcceptRequestLabel(text)) {
    BATON_CHECK(*label == text && text.size() <= 128);
    for (const char c : text) BATON_CHECK(c > 0x20 && c < 0x7f);
  }
  const std::string parent = router::AcceptTraceparent(text);
  BATON_CHECK(parent.empty() || (parent == text && text.size() == 55));
}

void Run(std::string_view text) {
  CheckNumbers(text);
  CheckAddresses(text);
  CheckUtf8(text);
  CheckReadyFile(text);
  CheckCredentials(text);
  CheckHeaders(text);
  // Whatever a field holds, it comes back.
  const ReadyFields fields{{std::string(text.substr(0, text.size() / 2)),
                            std::string(text.substr(text.size() / 2))}};
  BATON_CHECK(*ReadReadyFile(fuzz::MemoryFile(AsJson(fields)).path()) ==
              fields);
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 8 << 10) baton::Run(baton::fuzz::FuzzInput(data, size).Rest());
  return 0;
}
