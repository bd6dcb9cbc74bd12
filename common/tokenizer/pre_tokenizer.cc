#include "common/tokenizer/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton {
namespace {

// Unicode's White_Space; PCRE2's own \s also takes U+180E.
#define WHITE_SPACE R"(\t-\r \x{85}\p{Z})"
#define CONTRACTION "'s|'t|'re|'ve|'m|'ll|'d"

constexpr std::string_view kGpt2 = CONTRACTION
    R"(| ?\p{L}+| ?\p{N}+| ?[^)" WHITE_SPACE R"(\p{L}\p{N}]+|[)" WHITE_SPACE
    R"(]+(?![^)" WHITE_SPACE R"(])|[)" WHITE_SPACE R"(]+)";

constexpr std::string_view kDigit = R"(\p{N})";

constexpr std::string_view kLlama3 =
    "(?i:" CONTRACTION
    R"()|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^)" WHITE_SPACE
    R"(\p{L}\p{N}]+[\r\n]*|[)" WHITE_SPACE R"(]*[\r\n]+|[)" WHITE_SPACE
    R"(]+(?![^)" WHITE_SPACE R"(])|[)" WHITE_SPACE R"(]+)";

#undef WHITE_SPACE
#undef CONTRACTION

constexpr std::string_view kGpt2Patterns[] = {kGpt2};
constexpr std::string_view kSmolLmPatterns[] = {kDigit, kGpt2};
constexpr std::string_view kLlama3Patterns[] = {kLlama3};

constexpr PreTokenizerRules kRules[] = {
    {"gpt-2", kGpt2Patterns, false, false},
    {"llama-bpe", kLlama3Patterns, true, true},
    {"smollm", kSmolLmPatterns, false, false},
};

constexpr uint32_t kMatchLimit = 50'000'000;
constexpr uint32_t kHeapLimitKib = 64 * 1024;
constexpr size_t kJitStackBytes = 512 * 1024;

struct MatchState {
  pcre2_match_data* data = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* stack = nullptr;

  MatchState()
      : data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr)) {
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_heap_limit(context, kHeapLimitKib);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~MatchState() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;
};

std::string Pcre2Message(int code) {
  unsigned char text[256];
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

}  // namespace

class PreTokenizer::Pattern {
 public:
  static absl::StatusOr<std::unique_ptr<Pattern>> Compile(
      std::string_view source) {
    int code;
    PCRE2_SIZE offset;
    pcre2_code* compiled =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()),
                      source.size(), PCRE2_UTF, &code, &offset, nullptr);
    if (compiled == nullptr) {
      return absl::InternalError(StrCat("pre-tokenizer pattern at ", offset,
                                        ": ", Pcre2Message(code)));
    }
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
    return std::unique_ptr<Pattern>(new Pattern(compiled));
  }
  ~Pattern() { pcre2_code_free(compiled_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  // Calls `piece(view)`, which returns a status, for matches and gaps.
  template <class Piece>
  absl::Status Split(std::string_view text, const MatchState& state,
                     const Piece& piece) const {
    size_t at = 0;
    while (at < text.size()) {
      const int found = pcre2_match(
          compiled_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
          PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, state.data, state.context);
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0) {
        return absl::ResourceExhaustedError(
            StrCat("pre-tokenizer: ", Pcre2Message(found)));
      }
      // Copied: `piece` may match again with the same state.
      const size_t begin = pcre2_get_ovector_pointer(state.data)[0];
      const size_t end = pcre2_get_ovector_pointer(state.data)[1];
      if (begin > at) BATON_RETURN_IF_ERROR(piece(text.substr(at, begin - at)));
      BATON_RETURN_IF_ERROR(piece(text.substr(begin, end - begin)));
      at = end;
    }
    return at < text.size() ? piece(text.substr(at)) : absl::OkStatus();
  }

 private:
  explicit Pattern(pcre2_code* compiled) : compiled_(compiled) {}

  pcre2_code* compiled_;
};

const PreTokenizerRules* FindPreTokenizerRules(std::string_view name) {
  for (const PreTokenizerRules& rules : kRules) {
    if (rules.name == name) return &rules;
  }
  return nullptr;
}

std::string KnownPreTokenizers() {
  std::string names;
  for (const PreTokenizerRules& rules : kRules) {
    StrAppend(&names, names.empty() ? "" : ", ", rules.name);
  }
  return names;
}

absl::StatusOr<std::unique_ptr<PreTokenizer>> PreTokenizer::Create(
    const PreTokenizerRules& rules) {
  std::vector<std::unique_ptr<Pattern>> patterns;
  for (const std::string_view source : rules.patterns) {
    BATON_ASSIGN_OR_RETURN(std::unique_ptr<Pattern> pattern,
                           Pattern::Compile(source));
    patterns.push_back(std::move(pattern));
  }
  return std::unique_ptr<PreTokenizer>(new PreTokenizer(std::move(patterns)));
}

PreTokenizer::PreTokenizer(std::vector<std::unique_ptr<Pattern>> patterns)
    : patterns_(std::move(patterns)) {}

PreTokenizer::~PreTokenizer() = default;

absl::Status PreTokenizer::Split(
    std::string_view text,
    const std::function<void(std::string_view)>& word) const {
  const MatchState state;
  const std::function<absl::Status(size_t, std::string_view)> split_from =
      [&](size_t stage, std::string_view piece) -> absl::Status {
    if (stage == patterns_.size()) {
      word(piece);
      return absl::OkStatus();
    }
    return patterns_[stage]->Split(piece, state, [&](std::string_view part) {
      return split_from(stage + 1, part);
    });
  };
  return text.empty() ? absl::OkStatus() : split_from(0, text);
}

}  // namespace baton
