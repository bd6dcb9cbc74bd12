#ifndef BATON_COMMON_ENGINE_ENGINE_H_
#define BATON_COMMON_ENGINE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/monotonic_time.h"
#include "common/engine/draw_request.h"
#include "common/model/model.h"
#include "common/sampling/sampling.h"
#include "common/tokens/token.h"
#include "kernels/api/backend.h"

namespace baton {

// A run of consecutive positions of one sequence in a step: a prefill chunk
// (many tokens) or a decode step (one token, and drafts to verify).
struct StepSpan {
  std::vector<TokenId> tokens;
  // Speculation: all tokens but the first are guesses of what follows it.
  // Every row then draws the token after it, until one differs from the guess.
  bool drafted = false;
  uint32_t first_position = 0;
  std::vector<std::byte*> blocks;  // cover first_position + tokens.size()
  // From the last row; empty: no logits. When drafted exactly one, of the first
  // row's token; that of a later row follows from it.
  std::vector<DrawRequest> draws;
};

// One result per span, in order.
struct SpanResult {
  absl::Status status;  // INTERNAL: NaN or infinity in this span's rows
  // As asked, empty unless status is OK. Drafted: the run of tokens that follow
  // the first one, at least one; each but the last equals its guess. The KV of
  // as many positions is that of the sequence, the rest is to be cleared.
  std::vector<SampledToken> draws;
  uint32_t guesses = 0;  // of a drafted span, that were verified
};

struct StepResult {
  std::vector<SpanResult> spans;
  Duration elapsed{};
  // Of a draft model that guessed before it, if it did: time per pass, and per
  // sequence whether its KV is still good.
  std::vector<Duration> draft_elapsed;
  std::vector<absl::Status> drafts;
};

// Runs forward passes over a batch: mixed prefill chunks and decode rows. The
// result of a span never depends on the other spans (exact-v1). Calls must not
// overlap; workers call it from their compute thread.
class Engine {
 public:
  static constexpr size_t kLogitBytes = size_t{16} << 20;

  // `model` and its backend outlive the engine. `max_rows` bounds the rows of
  // one step and sizes the activation buffers once; `logit_bytes` bounds the
  // logits that exist at one time, but for a single row.
  Engine(const Model* model, uint32_t max_rows,
         size_t logit_bytes = kLogitBytes);
  ~Engine();

  // INVALID_ARGUMENT when the rows exceed max_rows, a span is empty, a token
  // is outside the vocabulary, the blocks do not cover the span or a drafted
  // span has not one draw; then nothing was written.
  absl::StatusOr<StepResult> Step(absl::Span<const StepSpan> spans);

  uint32_t max_rows() const;

 private:
  struct Buffers;
  const Model* model_;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace baton

#endif  // BATON_COMMON_ENGINE_ENGINE_H_
