#include "common/sequence/sequence.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace baton {

Sequence::Sequence(std::shared_ptr<const SequenceParams> params,
                   std::shared_ptr<const Vocabulary> vocabulary,
                   uint32_t choice, absl::Span<const TokenId> generated)
    : params_(std::move(params)),
      vocabulary_(std::move(vocabulary)),
      choice_(choice),
      text_(params_->stop_strings) {
  counts_.AddPrompt(params_->prompt);
  if (params_->min_tokens > 0) {
    banned_ = params_->stop_token_ids;
    if (!params_->ignore_eos) {
      banned_.insert(banned_.end(), vocabulary_->end_of_generation.begin(),
                     vocabulary_->end_of_generation.end());
    }
  }
  std::string already_sent;
  for (const TokenId token : generated) {
    finished_ = Feed(token, &already_sent).has_value();
    if (finished_) break;
  }
}

Sequence::Appended Sequence::Append(TokenId token) {
  BATON_CHECK(!finished_);
  Appended appended;
  appended.index = static_cast<uint32_t>(generated_.size());
  appended.finish = Feed(token, &appended.text);
  finished_ = appended.finish.has_value();
  return appended;
}

std::optional<FinishCause> Sequence::Feed(TokenId token, std::string* text) {
  const bool may_stop = generated_.size() >= params_->min_tokens;
  generated_.push_back(token);
  counts_.AddOutput(token);
  FinishCause cause;
  if (may_stop && EndsSequence(token)) {
    cause.kind = FinishKind::kStop;
    cause.stop_token = token;
    *text = text_.Finish();
    return cause;
  }
  TextStream::Output output = text_.Append(
      vocabulary_->bytes(token, params_->skip_special_tokens), may_stop);
  *text = std::move(output.text);
  if (output.stop.has_value()) {
    cause.kind = FinishKind::kStop;
    cause.stop_string = std::move(output.stop);
    return cause;
  }
  if (generated_.size() >= params_->max_tokens) {
    *text += text_.Finish();
    return cause;
  }
  return std::nullopt;
}

bool Sequence::EndsSequence(TokenId token) const {
  const std::vector<TokenId>& ends = vocabulary_->end_of_generation;
  const std::vector<TokenId>& stops = params_->stop_token_ids;
  return (!params_->ignore_eos &&
          std::binary_search(ends.begin(), ends.end(), token)) ||
         std::find(stops.begin(), stops.end(), token) != stops.end();
}

TokenId Sequence::TokenAt(uint64_t position) const {
  const uint64_t prompt = params_->prompt.size();
  return position < prompt ? params_->prompt[position]
                           : generated_[position - prompt];
}

DrawContext Sequence::NextDraw() const {
  DrawContext context;
  context.choice = choice_;
  context.position = length();
  if (generated_.size() < params_->min_tokens) context.banned = banned_;
  return context;
}

}  // namespace baton
