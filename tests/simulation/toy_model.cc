#include "tests/simulation/toy_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace baton::simulation {
namespace {

struct Slot {
  uint32_t token;
  uint32_t position;
  uint64_t digest;
};

uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// K of a position are token and position, V is the digest.
constexpr int kLanes = kernels::KvLayout::kTokens;
static_assert(kLanes == kBlockTokens);

std::byte* KOf(std::byte* block, int dim, uint32_t lane) {
  return block + (dim * kLanes + lane) * sizeof(uint16_t);
}

std::byte* VOf(std::byte* block, uint32_t lane) {
  return block + ToyKvLayout().v_offset(0, 0) + lane * sizeof(uint64_t);
}

Slot ReadSlot(absl::Span<std::byte* const> blocks, uint32_t position) {
  std::byte* block = blocks[position / kBlockTokens];
  const uint32_t lane = position % kBlockTokens;
  uint16_t k[4];
  for (int dim = 0; dim < 4; ++dim) {
    std::memcpy(&k[dim], KOf(block, dim, lane), sizeof(k[dim]));
  }
  Slot slot;
  std::memcpy(&slot.token, k, sizeof(slot.token));
  std::memcpy(&slot.position, k + 2, sizeof(slot.position));
  std::memcpy(&slot.digest, VOf(block, lane), sizeof(slot.digest));
  return slot;
}

void WriteSlot(absl::Span<std::byte* const> blocks, uint32_t position,
               const Slot& slot) {
  std::byte* block = blocks[position / kBlockTokens];
  const uint32_t lane = position % kBlockTokens;
  uint16_t k[4];
  std::memcpy(k, &slot.token, sizeof(slot.token));
  std::memcpy(k + 2, &slot.position, sizeof(slot.position));
  for (int dim = 0; dim < 4; ++dim) {
    std::memcpy(KOf(block, dim, lane), &k[dim], sizeof(k[dim]));
  }
  std::memcpy(VOf(block, lane), &slot.digest, sizeof(slot.digest));
}

// Digest of positions [0, end), each checked.
absl::Status VerifyContext(absl::Span<std::byte* const> blocks, uint32_t end,
                           uint64_t origin, uint64_t* digest) {
  *digest = origin;
  for (uint32_t p = 0; p < end; ++p) {
    const Slot slot = ReadSlot(blocks, p);
    *digest = ExtendDigest(*digest, slot.token);
    if (slot.position != p || slot.digest != *digest) {
      return absl::DataLossError(
          StrCat("position ", p, " of ", end, ": KV {token ", slot.token,
                 ", position ", slot.position, "} does not follow from the ",
                 "positions before it"));
    }
  }
  return absl::OkStatus();
}

// The positions from `first` on, to the end of their block, are zero.
absl::Status VerifyUnwritten(absl::Span<std::byte* const> blocks,
                             uint64_t first) {
  for (uint64_t p = first; p < BlocksFor(first + 1) * kBlockTokens; ++p) {
    const Slot slot = ReadSlot(blocks, static_cast<uint32_t>(p));
    if (slot.token == 0 && slot.position == 0 && slot.digest == 0) continue;
    return absl::DataLossError(StrCat("position ", p, ": KV {token ",
                                      slot.token, ", position ", slot.position,
                                      "} where nothing was computed yet"));
  }
  return absl::OkStatus();
}

float ToyLogSumExp(absl::Span<const float> logits) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += std::exp(double{logit} - top);
  return static_cast<float>(top + std::log(sum));
}

std::vector<std::string> Pieces() {
  // "é", "€" and "🎈" in pieces; "é", " " and letters whole.
  std::vector<std::string> pieces = {"\xC3",     "\xA9",     "\xE2\x82",
                                     "\xAC",     "\xF0\x9F", "\x8E\x88",
                                     "\xC3\xA9", " ",        "\n"};
  for (uint32_t i = 0; pieces.size() < kToyEnd; ++i) {
    std::string piece = i % 4 == 2 ? " " : "";
    piece += static_cast<char>('a' + i % 7);
    if (i % 3 == 1) piece += static_cast<char>('a' + i % 5);
    pieces.push_back(piece);
  }
  pieces.push_back("<end>");
  pieces.push_back("<special>");
  return pieces;
}

}  // namespace

kernels::KvLayout ToyKvLayout() {
  return {
      .layers = 1, .kv_heads = 1, .head_dim = 4, .type = kernels::KvType::kF16};
}

std::shared_ptr<const Vocabulary> ToyVocabulary() {
  static const auto* const vocabulary = [] {
    auto pieces = std::make_shared<const std::vector<std::string>>(Pieces());
    auto made = std::make_shared<Vocabulary>();
    made->bytes = [pieces](TokenId token, bool skip_special) {
      if (skip_special && token >= kToyEnd) return std::string_view();
      return std::string_view((*pieces)[token]);
    };
    made->end_of_generation = {kToyEnd};
    made->size = kToyVocabulary;
    return new std::shared_ptr<const Vocabulary>(std::move(made));
  }();
  return *vocabulary;
}

uint64_t ExtendDigest(uint64_t digest, TokenId token) {
  return Mix(digest * 0x9E3779B97F4A7C15u + token + 1);
}

void SpoilToyPositions(absl::Span<std::byte* const> blocks, uint64_t first,
                       uint64_t end) {
  for (uint64_t p = first; p < end; ++p) {
    WriteSlot(blocks, static_cast<uint32_t>(p), {~0u, ~0u, ~uint64_t{0}});
  }
}

std::vector<float> ToyLogits(uint64_t digest) {
  std::vector<float> logits(kToyVocabulary);
  for (uint32_t i = 0; i < kToyVocabulary; ++i) {
    const uint64_t bits = Mix(digest + (i + 1) * 0xD1B54A32D192ED03u) >> 51;
    logits[i] = static_cast<float>(bits) / 1024.0f - 4.0f;  // [-4, 4)
  }
  return logits;
}

SampledToken ToyDraw(uint64_t digest, const SamplingParams& params,
                     const TokenCounts& counts, const DrawContext& context) {
  const std::vector<float> logits = ToyLogits(digest);
  const float log_sum_exp = params.logprobs ? ToyLogSumExp(logits) : 0;
  absl::StatusOr<SampledToken> token =
      Sample(logits, params, counts, context, log_sum_exp);
  BATON_CHECK(token.ok());
  return *std::move(token);
}

absl::Status RunToyStep(absl::Span<const StepSpan> spans, uint32_t version,
                        StepResult* result) {
  for (size_t i = 0; i < spans.size(); ++i) {
    const StepSpan& span = spans[i];
    const uint64_t end = span.first_position + span.tokens.size();
    if (span.tokens.empty() || span.blocks.size() < BlocksFor(end)) {
      return absl::InternalError(StrCat("span ", i, ": ", span.blocks.size(),
                                        " blocks for ", span.tokens.size(),
                                        " tokens from ", span.first_position));
    }
    uint64_t digest;
    absl::Status status = VerifyContext(span.blocks, span.first_position,
                                        ToyOrigin(version), &digest);
    for (uint64_t p = span.first_position; status.ok() && p < end;
         p = BlocksFor(p + 1) * kBlockTokens) {
      status = VerifyUnwritten(span.blocks, p);
    }
    if (!status.ok()) {
      return absl::DataLossError(
          StrCat("span ", i, ": ", ToStd(status.message())));
    }
    uint32_t position = span.first_position;
    std::vector<uint64_t> digests;  // by row
    for (TokenId token : span.tokens) {
      digest = ExtendDigest(digest, token);
      digests.push_back(digest);
      WriteSlot(span.blocks, position, {token, position, digest});
      ++position;
    }
    SpanResult& out = result->spans.emplace_back();
    if (span.drafted) {
      out.draws = *DrawRun(span.draws.front(),
                           absl::MakeConstSpan(span.tokens).subspan(1),
                           [&](size_t row, const DrawRequest& draw) {
                             return ToyDraw(digests[row], *draw.params,
                                            draw.counts, draw.context());
                           });
      out.guesses = static_cast<uint32_t>(span.tokens.size() - 1);
      continue;
    }
    for (const DrawRequest& draw : span.draws) {
      out.draws.push_back(
          ToyDraw(digest, *draw.params, draw.counts, draw.context()));
    }
  }
  return absl::OkStatus();
}

ToyAnswer ExpectedAnswer(std::shared_ptr<const SequenceParams> params,
                         uint32_t choice, uint32_t version) {
  uint64_t digest = ToyOrigin(version);
  for (TokenId token : params->prompt) digest = ExtendDigest(digest, token);
  Sequence sequence(params, ToyVocabulary(), choice, {});
  ToyAnswer answer;
  while (true) {
    const SampledToken drawn = ToyDraw(digest, params->sampling,
                                       sequence.counts(), sequence.NextDraw());
    Sequence::Appended appended = sequence.Append(drawn.token);
    answer.tokens.push_back(drawn.token);
    answer.logprobs.push_back(drawn.logprob);
    answer.texts.push_back(std::move(appended.text));
    if (appended.finish.has_value()) {
      answer.finish = *std::move(appended.finish);
      return answer;
    }
    digest = ExtendDigest(digest, drawn.token);
  }
}

}  // namespace baton::simulation
