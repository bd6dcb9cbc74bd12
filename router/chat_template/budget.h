#ifndef BATON_ROUTER_CHAT_TEMPLATE_BUDGET_H_
#define BATON_ROUTER_CHAT_TEMPLATE_BUDGET_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "router/chat_template/chat_template.h"
#include "router/chat_template/marked_text.h"

namespace baton::router {

// What one rendering may still use. Everything whose cost depends on the
// template or the messages asks here first; RESOURCE_EXHAUSTED ends the
// rendering.
class Budget {
 public:
  explicit Budget(const ChatTemplateLimits& limits)
      : limits_(limits),
        steps_left_(limits.max_steps),
        bytes_left_(kCopiesOfOutput * limits.max_output_bytes) {}

  // Evaluated nodes, elements of lists made, comparisons.
  absl::Status Steps(uint64_t n);
  // Bytes copied or compared, in total.
  absl::Status Bytes(uint64_t n);
  // No string may outgrow the output.
  absl::Status StringOf(uint64_t bytes);
  // Containers within containers.
  absl::Status Nesting(int depth);
  absl::Status Append(MarkedText* text, const MarkedText& more);
  absl::Status Append(MarkedText* text, std::string_view more,
                      bool from_user = false);

  // Recursion of the interpreter; each successful Enter needs a Leave.
  absl::Status Enter();
  void Leave() { --depth_; }

 private:
  static constexpr uint64_t kCopiesOfOutput = 64;
  static constexpr int kNodesPerDepth = 8;

  ChatTemplateLimits limits_;
  int64_t steps_left_;
  uint64_t bytes_left_;
  int depth_ = 0;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_BUDGET_H_
