#include <cstring>

#include "tests/conformance/kernels_conformance.h"

namespace baton::kernels {
namespace {

struct Shape {
  int heads, kv_heads, head_dim;
  KvType type;
};

// KV blocks of one sequence. They start as NaN, so that reading a lane which
// was not written shows.
class Blocks {
 public:
  Blocks(const KvLayout& layout, int positions)
      : count_((positions + KvLayout::kTokens - 1) / KvLayout::kTokens),
        bytes_(layout.block_bytes()),
        storage_(count_ * bytes_, std::byte{0xff}) {
    for (size_t b = 0; b < count_; ++b) {
      pointers_.push_back(&storage_[(count_ - 1 - b) * bytes_]);
    }
  }
  absl::Span<std::byte* const> pointers() const { return pointers_; }
  const std::vector<std::byte>& storage() const { return storage_; }

 private:
  size_t count_, bytes_;
  std::vector<std::byte> storage_;
  std::vector<std::byte*> pointers_;
};

class AttentionTest : public KernelConformanceTest {
 protected:
  static constexpr int kLayer = 1;

  static KvLayout LayoutOf(const Shape& shape) {
    return {2, shape.kv_heads, shape.head_dim, shape.type};
  }

  // q, k, v of one sequence, row = position.
  struct Inputs {
    std::vector<float> q, k, v;
  };
  Inputs RandomInputs(const Shape& shape, int positions) {
    const int kv = positions * shape.kv_heads * shape.head_dim;
    return {
        RandomFloats(&random_, positions * shape.heads * shape.head_dim, 2.0f),
        RandomFloats(&random_, kv), RandomFloats(&random_, kv)};
  }

  // Outputs of all positions, the sequence fed in chunks.
  static std::vector<float> Feed(Backend* backend, const Shape& shape,
                                 const Inputs& in, int positions, int chunk,
                                 Blocks* blocks) {
    const KvLayout layout = LayoutOf(shape);
    const int q_width = shape.heads * shape.head_dim;
    const int kv_width = shape.kv_heads * shape.head_dim;
    std::vector<float> out(positions * q_width);
    for (int first = 0; first < positions; first += chunk) {
      const int rows = std::min(chunk, positions - first);
      const SequenceRows sequence = {0, rows, first, blocks->pointers()};
      backend->StoreKv(layout, kLayer, &in.k[first * kv_width],
                       &in.v[first * kv_width], {&sequence, 1});
      backend->Attention(layout, kLayer, &in.q[first * q_width], shape.heads,
                         {&sequence, 1}, &out[first * q_width]);
    }
    return out;
  }

  void Compare(const Shape& shape, int positions, int chunk) {
    SCOPED_TRACE(testing::Message()
                 << shape.heads << "/" << shape.kv_heads << " heads of "
                 << shape.head_dim << ", " << KvTypeName(shape.type) << ", "
                 << positions << " positions in chunks of " << chunk);
    const KvLayout layout = LayoutOf(shape);
    const Inputs in = RandomInputs(shape, positions);
    Blocks expected_blocks(layout, positions), blocks(layout, positions);
    const auto expected = Feed(reference_.get(), shape, in, positions,
                               positions, &expected_blocks);
    const auto actual = Feed(cpu_.get(), shape, in, positions, chunk, &blocks);
    EXPECT_TRUE(SameValues(expected, actual));
    EXPECT_TRUE(expected_blocks.storage() == blocks.storage());
  }
};

TEST_P(AttentionTest, StoresWhatTheReferenceStores) {
  for (const KvType type : kAllKvTypes) {
    for (const int head_dim : {2, 6, 8, 20, 64, 80, 130}) {
      const Shape shape = {2, 2, head_dim, type};
      SCOPED_TRACE(testing::Message() << head_dim << ", " << KvTypeName(type));
      const int positions = 37;
      Inputs in = RandomInputs(shape, positions);
      const int width = 2 * head_dim;
      in.k[width + 1] = 1e30f;  // saturates
      in.v[width] = -65519.0f;
      for (int i = 0; i < width; ++i) in.k[3 * width + i] = 0.0f;
      for (int i = 0; i < width; ++i) in.v[3 * width + i] = 1e-38f;
      Blocks expected(LayoutOf(shape), positions);
      Blocks actual(LayoutOf(shape), positions);
      for (const auto& [backend, blocks] :
           {std::pair{reference_.get(), &expected}, {cpu_.get(), &actual}}) {
        const SequenceRows all = {0, positions, 0, blocks->pointers()};
        backend->StoreKv(LayoutOf(shape), kLayer, in.k.data(), in.v.data(),
                         {&all, 1});
      }
      EXPECT_TRUE(expected.storage() == actual.storage());
    }
  }
}

TEST_P(AttentionTest, HeadShapesAndCacheTypes) {
  for (const KvType type : kAllKvTypes) {
    for (const auto& [heads, kv_heads] :
         {std::pair{1, 1}, {4, 4}, {3, 1}, {6, 2}, {8, 1}}) {
      for (const int head_dim : {8, 20, 64}) {
        Compare({heads, kv_heads, head_dim, type}, 70, 70);
      }
    }
    Compare({60, 1, 16, type}, 33, 33);
    Compare({2, 1, 80, type}, 70, 70);
    Compare({2, 1, 128, type}, 70, 70);
  }
}

TEST_P(AttentionTest, ContextsAcrossTileBorders) {
  for (const KvType type : kAllKvTypes) {
    for (const int positions :
         {1, 2, 15, 16, 17, 33, 63, 64, 65, 127, 128, 129, 200}) {
      Compare({3, 1, 16, type}, positions, positions);
    }
  }
}

TEST_P(AttentionTest, ContextsAcrossSplitBorders) {
  for (const KvType type : {KvType::kF16, KvType::kI8}) {
    for (const int positions : {511, 512, 513, 577, 1030}) {
      Compare({2, 1, 8, type}, positions, positions);
    }
  }
}

TEST_P(AttentionTest, ChunksDoNotChangeBits) {
  for (const KvType type : kAllKvTypes) {
    for (const int chunk : {1, 5, 16, 47, 64, 130}) {
      Compare({6, 2, 16, type}, 150, chunk);
    }
  }
  for (const KvType type : {KvType::kF16, KvType::kI8}) {
    for (const int chunk : {1, 64, 500}) Compare({2, 1, 8, type}, 600, chunk);
  }
}

// One row, or a few, over contexts long enough for several threads.
TEST_P(AttentionTest, SplitsOfAContextMeetInOrder) {
  for (const KvType type : kAllKvTypes) {
    const Shape shape = {8, 2, 64, type};
    const KvLayout layout = LayoutOf(shape);
    for (const auto& [context, rows] :
         {std::pair{1024, 1}, {1500, 1}, {1538, 3}, {2049, 2}}) {
      SCOPED_TRACE(testing::Message() << KvTypeName(type) << " " << context);
      const Inputs in = RandomInputs(shape, context);
      Blocks blocks(layout, context);
      const SequenceRows all = {0, context, 0, blocks.pointers()};
      reference_->StoreKv(layout, kLayer, in.k.data(), in.v.data(), {&all, 1});
      const SequenceRows last = {0, rows, context - rows, blocks.pointers()};
      const size_t from = in.q.size() - size_t{8} * 64 * rows;
      std::vector<float> expected(in.q.size() - from), actual(expected.size());
      for (const auto& [backend, out] :
           {std::pair{reference_.get(), &expected}, {cpu_.get(), &actual}}) {
        backend->Attention(layout, kLayer, &in.q[from], shape.heads, {&last, 1},
                           out->data());
      }
      EXPECT_TRUE(SameValues(expected, actual));
    }
  }
}

TEST_P(AttentionTest, SequencesOfABatchDoNotMeet) {
  const Shape shape = {6, 2, 24, KvType::kF16};
  const KvLayout layout = LayoutOf(shape);
  const std::vector<std::pair<int, int>> spans = {
      // first position, rows
      {70, 1}, {0, 33}, {511, 1}, {512, 2}, {64, 1}, {10, 100}};
  std::vector<Inputs> inputs;
  std::vector<Blocks> blocks, expected_blocks;
  for (const auto& [first, rows] : spans) {
    inputs.push_back(RandomInputs(shape, first + rows));
    blocks.emplace_back(layout, first + rows);
    expected_blocks.emplace_back(layout, first + rows);
  }
  std::vector<float> q, k, v, expected;
  std::vector<SequenceRows> sequences;
  int row = 0;
  const int q_width = 6 * 24, kv_width = 2 * 24;
  for (size_t i = 0; i < spans.size(); ++i) {
    const auto [first, rows] = spans[i];
    const Inputs& in = inputs[i];
    if (first > 0) {
      Feed(cpu_.get(), shape, in, first, first, &blocks[i]);
    }
    const auto whole = Feed(reference_.get(), shape, in, first + rows,
                            first + rows, &expected_blocks[i]);
    q.insert(q.end(), in.q.begin() + first * q_width, in.q.end());
    k.insert(k.end(), in.k.begin() + first * kv_width, in.k.end());
    v.insert(v.end(), in.v.begin() + first * kv_width, in.v.end());
    expected.insert(expected.end(), whole.begin() + first * q_width,
                    whole.end());
    sequences.push_back({row, rows, first, blocks[i].pointers()});
    row += rows;
  }
  std::vector<float> actual(expected.size());
  cpu_->StoreKv(layout, kLayer, k.data(), v.data(), sequences);
  cpu_->Attention(layout, kLayer, q.data(), shape.heads, sequences,
                  actual.data());
  EXPECT_TRUE(SameValues(expected, actual));
}

TEST_P(AttentionTest, HalfCacheSaturates) {
  const Shape shape = {1, 1, 8, KvType::kF16};
  Inputs in = RandomInputs(shape, 20);
  in.k[3] = 1e30f;
  in.v[5] = -1e30f;
  in.v[6] = 65519.0f;
  in.v[8 + 7] = 1e-7f;
  Blocks expected_blocks(LayoutOf(shape), 20), blocks(LayoutOf(shape), 20);
  const auto expected =
      Feed(reference_.get(), shape, in, 20, 20, &expected_blocks);
  EXPECT_TRUE(
      SameValues(expected, Feed(cpu_.get(), shape, in, 20, 20, &blocks)));
  EXPECT_TRUE(expected_blocks.storage() == blocks.storage());
  EXPECT_EQ(expected[5], -65504.0f);
}

// What is not finite reaches the rows that see it, and no other.
TEST_P(AttentionTest, PoisonStaysWithTheRowsThatSeeIt) {
  for (const KvType type : kAllKvTypes) {
    for (const float poison : {NAN, INFINITY}) {
      const Shape shape = {3, 1, 16, type};
      SCOPED_TRACE(testing::Message() << KvTypeName(type) << " " << poison);
      Inputs in = RandomInputs(shape, 90);
      in.k[70 * 16 + 3] = NAN;
      in.v[80 * 16 + 5] = poison;
      Blocks expected_blocks(LayoutOf(shape), 90);
      Blocks blocks(LayoutOf(shape), 90);
      const auto expected =
          Feed(reference_.get(), shape, in, 90, 90, &expected_blocks);
      const auto actual = Feed(cpu_.get(), shape, in, 90, 90, &blocks);
      EXPECT_TRUE(SameValues(expected, actual));
      for (size_t i = 0; i < actual.size(); ++i) {
        const bool poisoned = i / (3 * 16) >= 70;
        EXPECT_EQ(std::isnan(actual[i]), poisoned) << i;
      }
    }
  }
}

TEST_P(AttentionTest, AZeroHeadHasScaleZero) {
  const Shape shape = {2, 1, 64, KvType::kI8};
  Inputs in = RandomInputs(shape, 70);
  std::fill(in.k.begin(), in.k.end(), 0.0f);
  std::fill(in.v.begin(), in.v.begin() + 64 * 64, 1e-38f);
  Blocks expected_blocks(LayoutOf(shape), 70), blocks(LayoutOf(shape), 70);
  EXPECT_TRUE(
      SameValues(Feed(reference_.get(), shape, in, 70, 70, &expected_blocks),
                 Feed(cpu_.get(), shape, in, 70, 70, &blocks)));
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionTest, AllBackends(), BackendName);

}  // namespace
}  // namespace baton::kernels
