#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/strings/escaping.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/tokenizer/bpe_tokenizer.h"
#include "common/tokenizer/byte_alphabet.h"
#include "common/tokenizer/end_of_generation.h"

namespace baton {
namespace {

constexpr std::string_view kPre = "tokenizer.ggml.pre";
constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kAddBos = "tokenizer.ggml.add_bos_token";
constexpr std::string_view kAddEos = "tokenizer.ggml.add_eos_token";
constexpr std::string_view kBosId = "tokenizer.ggml.bos_token_id";
constexpr std::string_view kEosId = "tokenizer.ggml.eos_token_id";
constexpr std::string_view kEndOfTurnId = "tokenizer.ggml.eot_token_id";
constexpr std::string_view kEndOfMessageId = "tokenizer.ggml.eom_token_id";

constexpr size_t kMaxTokens = 1 << 24;

// llama.h, enum llama_token_type.
enum TokenType : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

}  // namespace

// Fills a BpeTokenizer from the file's metadata, step by step.
class BpeTokenizerLoader {
 public:
  explicit BpeTokenizerLoader(const GgufFile& file)
      : file_(file), tokenizer_(std::make_unique<BpeTokenizer>()) {}

  absl::StatusOr<std::unique_ptr<Tokenizer>> Load() {
    BATON_RETURN_IF_ERROR(LoadRules());
    BATON_RETURN_IF_ERROR(LoadVocabulary());
    BATON_RETURN_IF_ERROR(LoadMerges());
    BATON_RETURN_IF_ERROR(LoadBorders());
    FindEnds();
    return std::unique_ptr<Tokenizer>(std::move(tokenizer_));
  }

 private:
  template <class Got>
  absl::Status Error(std::string_view field, std::string_view what,
                     const Got& got, std::string_view allowed) const {
    return absl::InvalidArgumentError(StrCat(file_.path(), ": ", field, ": ",
                                             what, " (got ", got, ", allowed ",
                                             allowed, ")"));
  }

  absl::Status LoadRules() {
    BATON_ASSIGN_OR_RETURN(const std::string_view name, file_.String(kPre));
    rules_ = FindPreTokenizerRules(name);
    if (rules_ == nullptr) {
      return Error(kPre, "not supported", Quoted(name), KnownPreTokenizers());
    }
    BATON_ASSIGN_OR_RETURN(tokenizer_->pre_tokenizer_,
                           PreTokenizer::Create(*rules_));
    return absl::OkStatus();
  }

  absl::Status LoadVocabulary() {
    BATON_ASSIGN_OR_RETURN(const std::vector<std::string_view> texts,
                           file_.Strings(kTokens));
    if (texts.empty() || texts.size() > kMaxTokens) {
      return Error(kTokens, "size", texts.size(), StrCat("1..", kMaxTokens));
    }
    std::vector<int64_t> types(texts.size(), kNormal);
    if (file_.Has(kTypes)) {
      BATON_ASSIGN_OR_RETURN(types, file_.Integers(kTypes));
    }
    if (types.size() != texts.size()) {
      return Error(kTypes, "size differs from tokens", types.size(),
                   StrCat(texts.size()));
    }
    tokenizer_->tokens_.resize(texts.size());
    for (TokenId id = 0; id < texts.size(); ++id) {
      if (types[id] < kNormal || types[id] > kByte) {
        return Error(StrCat(kTypes, "[", id, "]"), "unknown type", types[id],
                     "1..6");
      }
      AddToken(id, texts[id], types[id]);
    }
    return absl::OkStatus();
  }

  void AddToken(TokenId id, std::string_view text, int64_t type) {
    BpeTokenizer::Token& token = tokenizer_->tokens_[id];
    if (type == kControl || type == kUserDefined) {
      token.bytes = std::string(text);
      token.special = type == kControl;
      tokenizer_->user_defined_and_control_.Add(text, id);
      if (type == kUserDefined) tokenizer_->user_defined_.Add(text, id);
      return;
    }
    std::optional<std::string> bytes = BytesOfAlphabet(text);
    const bool spelled = bytes.has_value() && !bytes->empty();
    token.bytes = spelled ? *std::move(bytes) : std::string(text);
    if (!spelled || type != kNormal || !ids_.try_emplace(text, id).second) {
      return;
    }
    if (token.bytes.size() == 1) {
      tokenizer_->merger_.SetByteToken(static_cast<uint8_t>(token.bytes[0]),
                                       id);
    }
    if (rules_->whole_words_first) {
      tokenizer_->whole_words_.try_emplace(token.bytes, id);
    }
  }

  absl::Status LoadMerges() {
    BATON_ASSIGN_OR_RETURN(const std::vector<std::string_view> merges,
                           file_.Strings(kMerges));
    for (uint32_t rank = 0; rank < merges.size(); ++rank) {
      const std::string_view merge = merges[rank];
      const size_t space = merge.find(' ', 1);
      if (space == std::string_view::npos) {
        return MergeError(rank, merge, "not a pair", "two tokens and a space");
      }
      const std::string_view left = merge.substr(0, space);
      const std::string_view right = merge.substr(space + 1);
      const auto left_id = ids_.find(left);
      const auto right_id = ids_.find(right);
      const auto merged_id = ids_.find(StrCat(left, right));
      if (left_id == ids_.end() || right_id == ids_.end() ||
          merged_id == ids_.end()) {
        return MergeError(rank, merge, "not in the vocabulary",
                          "pairs of tokens that make a token");
      }
      tokenizer_->merger_.AddMerge(left_id->second, right_id->second, rank,
                                   merged_id->second);
    }
    return absl::OkStatus();
  }

  absl::Status MergeError(uint32_t rank, std::string_view merge,
                          std::string_view what, std::string_view allowed) {
    return Error(StrCat(kMerges, "[", rank, "]"), what, Quoted(merge), allowed);
  }

  absl::Status LoadBorders() {
    BATON_ASSIGN_OR_RETURN(tokenizer_->bos_, OptionalId(kBosId));
    BATON_ASSIGN_OR_RETURN(tokenizer_->eos_, OptionalId(kEosId));
    BATON_ASSIGN_OR_RETURN(end_of_turn_, OptionalId(kEndOfTurnId));
    BATON_ASSIGN_OR_RETURN(end_of_message_, OptionalId(kEndOfMessageId));
    BATON_ASSIGN_OR_RETURN(tokenizer_->add_bos_,
                           Flag(kAddBos, rules_->add_bos));
    BATON_ASSIGN_OR_RETURN(tokenizer_->add_eos_, Flag(kAddEos, false));
    if (tokenizer_->add_bos_ && !tokenizer_->bos_) {
      return Error(kBosId, "missing, but BOS is to be added", "nothing",
                   "a token id");
    }
    if (tokenizer_->add_eos_ && !tokenizer_->eos_) {
      return Error(kEosId, "missing, but EOS is to be added", "nothing",
                   "a token id");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<TokenId>> OptionalId(std::string_view key) {
    if (!file_.Has(key)) return std::optional<TokenId>();
    BATON_ASSIGN_OR_RETURN(const uint64_t id, file_.Unsigned(key));
    if (id >= tokenizer_->tokens_.size()) {
      return Error(key, "not in the vocabulary", id,
                   StrCat("0..", tokenizer_->tokens_.size() - 1));
    }
    return std::optional<TokenId>(static_cast<TokenId>(id));
  }

  absl::StatusOr<bool> Flag(std::string_view key, bool otherwise) {
    if (!file_.Has(key)) return otherwise;
    return file_.Bool(key);
  }

  void FindEnds() {
    std::vector<TokenId>& ends = tokenizer_->end_of_generation_;
    for (const auto& id : {tokenizer_->eos_, end_of_turn_, end_of_message_}) {
      if (id.has_value()) ends.push_back(*id);
    }
    for (TokenId id = 0; id < tokenizer_->tokens_.size(); ++id) {
      const BpeTokenizer::Token& token = tokenizer_->tokens_[id];
      if (token.special && IsEndOfGenerationText(token.bytes)) {
        ends.push_back(id);
      }
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  }

  static std::string Quoted(std::string_view text) {
    return StrCat("'", absl::CHexEscape(ToAbsl(text.substr(0, 64))), "'");
  }

  const GgufFile& file_;
  std::unique_ptr<BpeTokenizer> tokenizer_;
  const PreTokenizerRules* rules_ = nullptr;
  std::unordered_map<std::string_view, TokenId> ids_;  // spelled, normal
  std::optional<TokenId> end_of_turn_;
  std::optional<TokenId> end_of_message_;
};

absl::StatusOr<std::unique_ptr<Tokenizer>> BpeTokenizer::FromGguf(
    const GgufFile& file) {
  return BpeTokenizerLoader(file).Load();
}

}  // namespace baton
