#include "router/chat_template/budget.h"

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton::router {

absl::Status Budget::Steps(uint64_t n) {
  if (n > static_cast<uint64_t>(steps_left_)) {
    return absl::ResourceExhaustedError(
        StrCat("chat_template: more than ", limits_.max_steps, " steps"));
  }
  steps_left_ -= static_cast<int64_t>(n);
  return absl::OkStatus();
}

absl::Status Budget::Bytes(uint64_t n) {
  if (n > bytes_left_) {
    return absl::ResourceExhaustedError(
        StrCat("chat_template: more than ",
               kCopiesOfOutput * limits_.max_output_bytes, " bytes of work"));
  }
  bytes_left_ -= n;
  return absl::OkStatus();
}

absl::Status Budget::StringOf(uint64_t bytes) {
  if (bytes > limits_.max_output_bytes) {
    return absl::ResourceExhaustedError(StrCat("chat_template: more than ",
                                               limits_.max_output_bytes,
                                               " bytes of text"));
  }
  return Bytes(bytes);
}

absl::Status Budget::Nesting(int depth) {
  if (depth <= limits_.max_depth) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      StrCat("chat_template: values nested deeper than ", limits_.max_depth));
}

absl::Status Budget::Append(MarkedText* text, const MarkedText& more) {
  BATON_RETURN_IF_ERROR(Bytes(more.size()));
  if (text->size() + more.size() > limits_.max_output_bytes) {
    return StringOf(text->size() + more.size());
  }
  text->Append(more);
  return absl::OkStatus();
}

absl::Status Budget::Append(MarkedText* text, std::string_view more,
                            bool from_user) {
  BATON_RETURN_IF_ERROR(Bytes(more.size()));
  if (text->size() + more.size() > limits_.max_output_bytes) {
    return StringOf(text->size() + more.size());
  }
  text->Append(more, from_user);
  return absl::OkStatus();
}

absl::Status Budget::Enter() {
  if (depth_ >= kNodesPerDepth * limits_.max_depth) {
    return absl::ResourceExhaustedError(
        StrCat("chat_template: nested deeper than ", limits_.max_depth));
  }
  ++depth_;
  return absl::OkStatus();
}

}  // namespace baton::router
