#include "common/engine/engine.h"

#include <algorithm>
#include <string_view>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton {
namespace {

absl::Status Invalid(size_t span, std::string_view field, std::string_view what,
                     uint64_t got, uint64_t allowed) {
  return absl::InvalidArgumentError(StrCat("spans[", span, "].", field, ": ",
                                           what, " (got ", got, ", allowed ",
                                           allowed, ")"));
}

absl::Status CheckSpan(const StepSpan& span, size_t index,
                       const ModelConfig& config) {
  if (span.tokens.empty()) {
    return Invalid(index, "tokens", "too few", 0, 1);
  }
  const auto vocabulary = static_cast<TokenId>(config.vocabulary);
  for (const TokenId token : span.tokens) {
    if (token < vocabulary) continue;
    return Invalid(index, "tokens", "outside the vocabulary", token,
                   vocabulary - 1);
  }
  const uint64_t end = uint64_t{span.first_position} + span.tokens.size();
  const auto context = static_cast<uint64_t>(config.context);
  if (end > context) {
    return Invalid(index, "first_position", "beyond the context", end, context);
  }
  if (span.blocks.size() < BlocksFor(end)) {
    return Invalid(index, "blocks", "too few", span.blocks.size(),
                   BlocksFor(end));
  }
  for (const DrawRequest& draw : span.draws) {
    if (draw.params == nullptr) {
      return Invalid(index, "draws", "without parameters", 0, 1);
    }
  }
  if (span.drafted && span.draws.size() != 1) {
    return Invalid(index, "draws", "not one draw for drafts", span.draws.size(),
                   1);
  }
  return absl::OkStatus();
}

size_t LogitRowsOf(const StepSpan& span) {
  if (span.draws.empty()) return 0;
  return span.drafted ? span.tokens.size() : 1;
}

ForwardSpan ToForward(const StepSpan& span) {
  using Logits = ForwardSpan::Logits;
  return {.tokens = span.tokens,
          .first_position = static_cast<int>(span.first_position),
          .blocks = span.blocks,
          .logits = span.draws.empty() ? Logits::kNone
                    : span.drafted     ? Logits::kAll
                                       : Logits::kLast};
}

// Hands out the logits of a pass row by row, in order, and computes as many at
// once as fit the memory meant for them: a row shares the output matrix with
// its neighbours.
class LogitRows {
 public:
  // `rows`: how many there are in all.
  LogitRows(const Model& model, Model::Scratch* scratch, int rows, size_t bytes)
      : model_(model),
        scratch_(scratch),
        vocabulary_(static_cast<size_t>(model.config().vocabulary)),
        rows_(rows),
        most_(static_cast<int>(std::clamp<size_t>(
            bytes / (vocabulary_ * sizeof(float)), 1, std::max(rows, 1)))) {}

  absl::Span<const float> Next() {
    if (next_ >= end_) {
      first_ = next_;
      end_ = next_ + std::min(most_, rows_ - next_);
      logits_ = model_.Logits(scratch_, first_, end_ - first_);
    }
    const auto row = static_cast<size_t>(next_++ - first_);
    return {logits_ + row * vocabulary_, vocabulary_};
  }
  // The next row will be `row`, not before the current next one.
  void SkipTo(size_t row) { next_ = static_cast<int>(row); }

 private:
  const Model& model_;
  Model::Scratch* scratch_;
  const size_t vocabulary_;
  const int rows_;
  const int most_;  // at once
  int next_ = 0;
  int first_ = 0;  // of those at logits_
  int end_ = 0;
  const float* logits_ = nullptr;
};

// Draws from rows of logits, what they have in common once per row.
class RowSampler {
 public:
  RowSampler(absl::Span<const float> logits, bool logprobs,
             kernels::Backend* backend)
      : logits_(logits),
        log_sum_exp_(logprobs
                         ? backend->LogSumExp(logits.data(),
                                              static_cast<int>(logits.size()))
                         : 0) {}

  absl::StatusOr<SampledToken> Sample(const DrawRequest& draw) const {
    return baton::Sample(logits_, *draw.params, draw.counts, draw.context(),
                         log_sum_exp_);
  }

 private:
  const absl::Span<const float> logits_;
  const float log_sum_exp_;
};

bool WantsLogprobs(const DrawRequest& draw) { return draw.params->logprobs; }

// Draws in order from one row of logits; the first failure ends the span.
absl::StatusOr<std::vector<SampledToken>> DrawAll(
    const StepSpan& span, absl::Span<const float> logits,
    kernels::Backend* backend) {
  const RowSampler sampler(
      logits, std::any_of(span.draws.begin(), span.draws.end(), WantsLogprobs),
      backend);
  std::vector<SampledToken> drawn;
  for (const DrawRequest& draw : span.draws) {
    BATON_ASSIGN_OR_RETURN(SampledToken token, sampler.Sample(draw));
    drawn.push_back(std::move(token));
  }
  return drawn;
}

absl::StatusOr<std::vector<SampledToken>> DrawDrafted(
    const StepSpan& span, LogitRows* rows, kernels::Backend* backend) {
  return DrawRun(span.draws.front(),
                 absl::MakeConstSpan(span.tokens).subspan(1),
                 [&](size_t, const DrawRequest& draw) {
                   return RowSampler(rows->Next(), WantsLogprobs(draw), backend)
                       .Sample(draw);
                 });
}

SpanResult Draw(const StepSpan& span, LogitRows* rows,
                kernels::Backend* backend) {
  auto drawn = span.drafted ? DrawDrafted(span, rows, backend)
                            : DrawAll(span, rows->Next(), backend);
  SpanResult result;
  if (drawn.ok()) {
    result.draws = *std::move(drawn);
  } else {
    result.status = drawn.status();
  }
  return result;
}

}  // namespace

struct Engine::Buffers {
  uint32_t max_rows;
  size_t logit_bytes;
  std::unique_ptr<Model::Scratch> scratch;
  std::vector<ForwardSpan> forward;
  std::unique_ptr<bool[]> finite;  // [max_rows]
};

Engine::Engine(const Model* model, uint32_t max_rows, size_t logit_bytes)
    : model_(model), buffers_(std::make_unique<Buffers>()) {
  BATON_CHECK(max_rows > 0);
  buffers_->max_rows = max_rows;
  buffers_->logit_bytes = logit_bytes;
  buffers_->scratch = model->NewScratch(static_cast<int>(max_rows));
  buffers_->finite = std::make_unique<bool[]>(max_rows);
}

Engine::~Engine() = default;

uint32_t Engine::max_rows() const { return buffers_->max_rows; }

absl::StatusOr<StepResult> Engine::Step(absl::Span<const StepSpan> spans) {
  const MonotonicTime start = MonotonicNow();
  const ModelConfig& config = model_->config();
  uint64_t rows = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    BATON_RETURN_IF_ERROR(CheckSpan(spans[i], i, config));
    rows += spans[i].tokens.size();
  }
  if (rows > max_rows()) {
    return absl::InvalidArgumentError(StrCat("spans: too many rows (got ", rows,
                                             ", allowed ", max_rows(), ")"));
  }
  StepResult result;
  if (spans.empty()) return result;

  buffers_->forward.clear();
  for (const StepSpan& span : spans) {
    buffers_->forward.push_back(ToForward(span));
  }
  const absl::Span<bool> finite(buffers_->finite.get(), spans.size());
  model_->Forward(buffers_->forward, buffers_->scratch.get(), finite);

  size_t logit_rows = 0;
  for (const StepSpan& span : spans) logit_rows += LogitRowsOf(span);
  LogitRows logits(*model_, buffers_->scratch.get(),
                   static_cast<int>(logit_rows), buffers_->logit_bytes);
  result.spans.reserve(spans.size());
  size_t next_row = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    logits.SkipTo(next_row);
    next_row += LogitRowsOf(spans[i]);
    if (!finite[i]) {
      result.spans.emplace_back().status =
          absl::InternalError("NaN or infinity in the activations");
    } else if (!spans[i].draws.empty()) {
      result.spans.push_back(Draw(spans[i], &logits, model_->backend()));
    } else {
      result.spans.emplace_back();
    }
    if (spans[i].drafted) {
      result.spans.back().guesses =
          static_cast<uint32_t>(spans[i].tokens.size() - 1);
    }
  }
  result.elapsed = MonotonicNow() - start;
  return result;
}

}  // namespace baton
