#include "tests/simulation/fault_kind.h"

#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace baton::simulation {
namespace {

constexpr std::string_view kNames[kFaultKinds] = {
    "worker-crash",  "worker-freeze",   "worker-drain",   "router-crash",
    "router-freeze", "router-drain",    "failpoint",      "clock-jump",
    "session-break", "partition",       "command-repeat", "link-break",
    "link-stall",    "bit-flip",        "send-error",     "duplicate",
    "step-stall",    "numeric-failure", "cancel",         "short-deadline",
    "slow-client",   "membership",      "broken-worker",
};

}  // namespace

std::string_view Name(FaultKind kind) { return kNames[static_cast<int>(kind)]; }

FaultSet FaultSet::All() {
  FaultSet all;
  for (int i = 0; i < kFaultKinds; ++i) all.Add(static_cast<FaultKind>(i));
  return all;
}

FaultSet FaultSet::Harmless() {
  FaultSet kinds;
  for (FaultKind kind :
       {FaultKind::kCommandRepeat, FaultKind::kDuplicate, FaultKind::kCancel,
        FaultKind::kShortDeadline, FaultKind::kSlowClient}) {
    kinds.Add(kind);
  }
  return kinds;
}

std::vector<FaultKind> FaultSet::Kinds() const {
  std::vector<FaultKind> kinds;
  for (int i = 0; i < kFaultKinds; ++i) {
    if (Has(static_cast<FaultKind>(i))) {
      kinds.push_back(static_cast<FaultKind>(i));
    }
  }
  return kinds;
}

std::string FaultSet::ToString() const {
  std::string text;
  for (FaultKind kind : Kinds()) {
    StrAppend(&text, text.empty() ? "" : ",", Name(kind));
  }
  return text;
}

absl::StatusOr<FaultSet> FaultSet::Parse(std::string_view text) {
  FaultSet kinds;
  for (absl::string_view word :
       absl::StrSplit(ToAbsl(text), ',', absl::SkipEmpty())) {
    bool known = false;
    for (FaultKind kind : All().Kinds()) {
      if (ToAbsl(Name(kind)) != word) continue;
      kinds.Add(kind);
      known = true;
    }
    if (!known) {
      return absl::InvalidArgumentError(StrCat("fault kind: got ", ToStd(word),
                                               ", allowed ", All().ToString()));
    }
  }
  return kinds;
}

}  // namespace baton::simulation
