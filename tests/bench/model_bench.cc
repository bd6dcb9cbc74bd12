#include "tests/bench/model_bench.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status_macros.h"
#include "tests/support/generation.h"

namespace baton {
namespace {

std::shared_ptr<const SamplingParams> Greedy() {
  const auto params = std::make_shared<SamplingParams>();
  params->temperature = 0;
  return params;
}

}  // namespace

ModelBench::ModelBench(const Model& model, uint32_t max_rows, uint32_t chunk,
                       ProfilingBackend* profile)
    : model_(model),
      profile_(profile),
      engine_(&model, std::max(max_rows, chunk)),
      chunk_(chunk),
      vocabulary_(static_cast<uint32_t>(model.config().vocabulary)),
      greedy_(Greedy()) {}

absl::StatusOr<double> ModelBench::Prefill(uint32_t tokens, uint32_t depth) {
  const SequenceKv kv(model_.kv_layout(), depth + tokens);
  BATON_RETURN_IF_ERROR(Feed(kv, 0, depth, /*draw=*/false).status());
  if (profile_ != nullptr) profile_->Reset();
  return Feed(kv, depth, tokens, /*draw=*/true);
}

absl::StatusOr<std::vector<double>> ModelBench::Decode(uint32_t sequences,
                                                       uint32_t depth,
                                                       uint32_t steps) {
  const size_t block_bytes = model_.kv_layout().block_bytes();
  std::vector<SequenceKv> kv;
  for (uint32_t i = 0; i < sequences; ++i) {
    kv.emplace_back(model_.kv_layout(), depth + steps);
    if (i == 0) {
      BATON_RETURN_IF_ERROR(Feed(kv[0], 0, depth, /*draw=*/false).status());
      continue;
    }
    for (size_t b = 0; b < kv[0].blocks().size(); ++b) {
      std::memcpy(kv[i].blocks()[b], kv[0].blocks()[b], block_bytes);
    }
  }
  if (profile_ != nullptr) profile_->Reset();
  std::vector<double> seconds;
  std::vector<TokenId> next = PseudoText(sequences, vocabulary_, 2);
  for (uint32_t step = 0; step < steps; ++step) {
    const uint32_t position = depth + step;
    std::vector<StepSpan> spans;
    for (uint32_t i = 0; i < sequences; ++i) {
      spans.push_back({.tokens = {next[i]},
                       .first_position = position,
                       .blocks = kv[i].blocks(),
                       .draws = {Draw(position + 1)}});
    }
    BATON_ASSIGN_OR_RETURN(const StepResult result, engine_.Step(spans));
    seconds.push_back(Seconds(result.elapsed));
    for (uint32_t i = 0; i < sequences; ++i) {
      BATON_RETURN_IF_ERROR(result.spans[i].status);
      next[i] = result.spans[i].draws.front().token;
    }
  }
  return seconds;
}

absl::StatusOr<double> ModelBench::Feed(const SequenceKv& kv, uint32_t first,
                                        uint32_t tokens, bool draw) {
  const std::vector<TokenId> text = PseudoText(first + tokens, vocabulary_, 1);
  double seconds = 0;
  for (uint32_t done = 0; done < tokens; done += chunk_) {
    const uint32_t rows = std::min(chunk_, tokens - done);
    const auto from = text.begin() + first + done;
    StepSpan span{.tokens = {from, from + rows},
                  .first_position = first + done,
                  .blocks = kv.blocks(),
                  .draws = {}};
    if (draw && done + rows == tokens) {
      span.draws.push_back(Draw(first + tokens));
    }
    BATON_ASSIGN_OR_RETURN(const StepResult result, engine_.Step({&span, 1}));
    BATON_RETURN_IF_ERROR(result.spans.front().status);
    seconds += Seconds(result.elapsed);
  }
  return seconds;
}

DrawRequest ModelBench::Draw(uint32_t position) const {
  DrawRequest draw;
  draw.params = greedy_;
  draw.position = position;
  return draw;
}

}  // namespace baton
