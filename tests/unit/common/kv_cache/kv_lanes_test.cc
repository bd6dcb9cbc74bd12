#include "common/kv_cache/kv_lanes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace baton {
namespace {

using kernels::KvLayout;
using kernels::KvType;

constexpr int kBlocks = 3;

// Sequences of three blocks, written by the words of KvLayout's comment.
class Kv {
 public:
  Kv(const KvLayout& layout, int positions) : layout_(layout) {
    for (auto& block : memory_) block.resize(layout.block_bytes());
    for (int position = 0; position < positions; ++position) Write(position);
  }

  std::vector<std::byte*> blocks() {
    std::vector<std::byte*> blocks;
    for (auto& block : memory_) blocks.push_back(block.data());
    return blocks;
  }
  friend bool operator==(const Kv& a, const Kv& b) {
    return std::equal(std::begin(a.memory_), std::end(a.memory_),
                      std::begin(b.memory_));
  }

 private:
  void Write(int position) {
    std::byte* block = memory_[position / 16].data();
    const size_t token = position % 16;
    const size_t dims = static_cast<size_t>(layout_.head_dim);
    for (int layer = 0; layer < layout_.layers; ++layer) {
      for (int head = 0; head < layout_.kv_heads; ++head) {
        std::byte* k = block + layout_.k_offset(layer, head);
        std::byte* v = block + layout_.v_offset(layer, head);
        for (size_t d = 0; d < dims; ++d) {
          if (layout_.type == KvType::kI8) {
            Fill(k + (d / 4 * 16 + token) * 4 + d % 4, 1);
            Fill(v + (token / 4 * dims + d) * 4 + token % 4, 1);
          } else {
            const size_t bytes = kernels::KvElementBytes(layout_.type);
            Fill(k + (d * 16 + token) * bytes, bytes);
            Fill(v + (token * dims + d) * bytes, bytes);
          }
        }
        if (layout_.type == KvType::kI8) {
          Fill(k + layout_.code_bytes() + token * 4, 4);
          Fill(v + layout_.code_bytes() + token * 4, 4);
        }
      }
    }
  }
  static void Fill(std::byte* at, size_t bytes) {
    std::memset(at, 0xab, bytes);
  }

  const KvLayout layout_;
  std::vector<std::byte> memory_[kBlocks];
};

TEST(KvLanesTest, ClearedPositionsAreAsIfNeverWritten) {
  for (const KvType type : kernels::kAllKvTypes) {
    for (const int head_dim : {4, 6, 16}) {
      const KvLayout layout{
          .layers = 2, .kv_heads = 2, .head_dim = head_dim, .type = type};
      for (const int end : {1, 5, 16, 17, 31, 33, 48}) {
        for (int first = 0; first <= end; ++first) {
          Kv kv(layout, end);
          ClearPositions(layout, kv.blocks(), first, end);
          EXPECT_TRUE(kv == Kv(layout, first))
              << kernels::KvTypeName(type) << " of " << head_dim
              << ": positions " << first << " to " << end;
        }
      }
    }
  }
}

}  // namespace
}  // namespace baton
