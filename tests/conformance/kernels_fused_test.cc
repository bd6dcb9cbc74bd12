// The fused operations of the CPU backend against the reference's, which are
// compositions of simple ones.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/api/half.h"
#include "tests/conformance/kernels_conformance.h"

namespace baton::kernels {
namespace {

using Type = TensorType;

constexpr float kEpsilon = 1e-5f;
constexpr int kPositions = 80;  // of every sequence: 5 blocks

struct QkvCase {
  Type query, key, value;
  int width, heads, kv_heads, head_dim, rotary_dims;
  KvType kv_type = KvType::kF16;
};

constexpr QkvCase kQkvCases[] = {
    {Type::kQ4_1, Type::kQ4_1, Type::kQ4_1, 576, 9, 3, 64, 64},
    {Type::kQ4_0, Type::kQ8_0, Type::kQ6_K, 256, 4, 4, 16, 16, KvType::kF32},
    {Type::kQ4_K, Type::kQ5_K, Type::kF16, 256, 6, 2, 10, 6},
    {Type::kF32, Type::kBF16, Type::kF16, 33, 5, 5, 10, 10, KvType::kF32},
    {Type::kF16, Type::kQ5_1, Type::kF32, 64, 3, 1, 48, 32, KvType::kI8},
    {Type::kQ5_0, Type::kQ5_0, Type::kQ5_0, 96, 7, 7, 20, 20, KvType::kI8},
    {Type::kQ8_0, Type::kQ8_0, Type::kQ8_0, 512, 8, 2, 128, 128},
};

// Bit for bit equal, but for payloads of NaNs.
template <typename T>
bool SameElements(const std::byte* a, const std::byte* b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    T x, y;
    std::memcpy(&x, a + i * sizeof(T), sizeof(T));
    std::memcpy(&y, b + i * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, float>) {
      if (std::isnan(x) && std::isnan(y)) continue;
    } else {
      if (std::isnan(F16ToF32(x)) && std::isnan(F16ToF32(y))) continue;
    }
    if (std::memcmp(&x, &y, sizeof(T)) != 0) return false;
  }
  return true;
}

bool SameHead(const KvLayout& layout, const std::byte* a, const std::byte* b) {
  const size_t codes = layout.code_bytes();
  switch (layout.type) {
    case KvType::kF32:
      return SameElements<float>(a, b, codes / sizeof(float));
    case KvType::kF16:
      return SameElements<uint16_t>(a, b, codes / sizeof(uint16_t));
    case KvType::kI8:
      return std::memcmp(a, b, codes) == 0 &&
             SameElements<float>(a + codes, b + codes, KvLayout::kTokens);
  }
  return false;
}

bool SameCache(const KvLayout& layout, const std::vector<std::byte>& a,
               const std::vector<std::byte>& b) {
  if (a.size() != b.size() || a.size() % layout.head_bytes() != 0) return false;
  for (size_t at = 0; at < a.size(); at += layout.head_bytes()) {
    if (!SameHead(layout, &a[at], &b[at])) return false;
  }
  return true;
}

class FusedTest : public KernelConformanceTest {
 protected:
  // What one call made: queries, the cache's bytes, verdicts.
  struct QkvResult {
    KvLayout layout;
    std::vector<float> query;
    std::vector<std::byte> cache;
    std::vector<bool> finite;
  };

  QkvResult ProjectQkv(Backend* backend, const QkvCase& c,
                       const std::vector<FileMatrix>& matrices,
                       const std::vector<float>& x,
                       const std::vector<SequenceRows>& sequences, bool query,
                       bool key_value) {
    const int n = static_cast<int>(x.size()) / c.width;
    const KvLayout layout = {2, c.kv_heads, c.head_dim, c.kv_type};
    const size_t blocks = sequences.size() * kPositions / KvLayout::kTokens;
    QkvResult result;
    result.layout = layout;
    result.query.assign(int64_t{n} * c.heads * c.head_dim, 0.5f);
    result.cache.resize(blocks * layout.block_bytes());
    std::vector<std::byte*> pointers;
    for (size_t i = 0; i < blocks; ++i) {
      pointers.push_back(result.cache.data() + i * layout.block_bytes());
    }
    std::vector<SequenceRows> placed = sequences;
    for (size_t i = 0; i < placed.size(); ++i) {
      placed[i].blocks = absl::MakeConstSpan(pointers).subspan(
          i * kPositions / KvLayout::kTokens, kPositions / KvLayout::kTokens);
    }
    const auto w_query = Pack(backend, matrices[0]);
    const auto w_key = Pack(backend, matrices[1]);
    const auto w_value = Pack(backend, matrices[2]);
    const auto finite = std::make_unique<bool[]>(n);
    std::fill_n(finite.get(), n, true);
    backend->ProjectQkv(x.data(), n,
                        {.norm = {norm_.data(), kEpsilon},
                         .query = query ? w_query.get() : nullptr,
                         .key = key_value ? w_key.get() : nullptr,
                         .value = key_value ? w_value.get() : nullptr},
                        {c.rotary_dims, cos_.data(), sin_.data()}, layout, 1,
                        placed, result.query.data(), finite.get());
    result.finite.assign(finite.get(), finite.get() + n);
    return result;
  }

  void CompareQkv(const QkvCase& c, const std::vector<float>& x,
                  const std::vector<SequenceRows>& sequences, bool query = true,
                  bool key_value = true, float norm = 1.0f) {
    const int n = static_cast<int>(x.size()) / c.width;
    const std::vector<FileMatrix> matrices = {
        RandomMatrix(&random_, c.query, c.heads * c.head_dim, c.width),
        RandomMatrix(&random_, c.key, c.kv_heads * c.head_dim, c.width),
        RandomMatrix(&random_, c.value, c.kv_heads * c.head_dim, c.width)};
    norm_ = RandomFloats(&random_, c.width, norm);
    cos_ = RandomFloats(&random_, n * c.rotary_dims / 2);
    sin_ = RandomFloats(&random_, n * c.rotary_dims / 2);
    const QkvResult expected = ProjectQkv(reference_.get(), c, matrices, x,
                                          sequences, query, key_value);
    const QkvResult actual =
        ProjectQkv(cpu_.get(), c, matrices, x, sequences, query, key_value);
    EXPECT_TRUE(SameValues(expected.query, actual.query)) << n << " rows";
    finite_ = actual.finite;
    EXPECT_EQ(expected.finite, actual.finite);
    EXPECT_TRUE(SameCache(expected.layout, expected.cache, actual.cache))
        << n << " rows";
    wrote_query_ = std::any_of(actual.query.begin(), actual.query.end(),
                               [](float value) { return value != 0.5f; });
    wrote_cache_ =
        std::any_of(actual.cache.begin(), actual.cache.end(),
                    [](std::byte byte) { return byte != std::byte{0}; });
  }

  void CompareFeedForward(Type gate, Type up, Type down, int width, int ffn,
                          std::vector<float> x) {
    const int n = static_cast<int>(x.size()) / width;
    const std::vector<FileMatrix> matrices = {
        RandomMatrix(&random_, gate, ffn, width),
        RandomMatrix(&random_, up, ffn, width),
        RandomMatrix(&random_, down, width, ffn)};
    norm_ = RandomFloats(&random_, width);
    const auto run = [&](Backend* backend) {
      std::vector<float> out = x;
      const auto w_gate = Pack(backend, matrices[0]);
      const auto w_up = Pack(backend, matrices[1]);
      const auto w_down = Pack(backend, matrices[2]);
      backend->FeedForward({.norm = {norm_.data(), kEpsilon},
                            .gate = w_gate.get(),
                            .up = w_up.get(),
                            .down = w_down.get()},
                           n, out.data());
      return out;
    };
    const std::vector<float> actual = run(cpu_.get());
    EXPECT_TRUE(SameValues(run(reference_.get()), actual))
        << TraitsOf(gate).name << " " << TraitsOf(up).name << " "
        << TraitsOf(down).name << ", " << width << " x " << ffn << ", " << n
        << " rows";
    EXPECT_NE(actual, x);
  }

  std::vector<float> norm_, cos_, sin_;
  std::vector<bool> finite_;
  bool wrote_query_ = false, wrote_cache_ = false;
};

TEST_P(FusedTest, ProjectQkv) {
  for (const QkvCase& c : kQkvCases) {
    SCOPED_TRACE(testing::Message() << c.heads << " heads of " << c.head_dim);
    for (const int n : {1, 2, 5, 64, 70}) {
      CompareQkv(c, RandomFloats(&random_, n * c.width), {{0, n, 3, {}}});
    }
    // Several sequences of one step, in blocks of their own.
    CompareQkv(
        c, RandomFloats(&random_, 24 * c.width),
        {{0, 1, 79, {}}, {1, 20, 30, {}}, {21, 1, 0, {}}, {22, 2, 15, {}}});
  }
}

TEST_P(FusedTest, ProjectQkvOneSideOnly) {
  for (const QkvCase& c : kQkvCases) {
    for (const int n : {1, 40}) {
      const std::vector<float> x = RandomFloats(&random_, n * c.width);
      CompareQkv(c, x, {{0, n, 7, {}}}, true, false);
      EXPECT_TRUE(wrote_query_);
      EXPECT_FALSE(wrote_cache_);
      CompareQkv(c, x, {{0, n, 7, {}}}, false, true);
      EXPECT_FALSE(wrote_query_);
      EXPECT_TRUE(wrote_cache_);
    }
  }
}

TEST_P(FusedTest, ProjectQkvTellsRowsThatAreNotFinite) {
  for (const QkvCase& c : kQkvCases) {
    std::vector<float> x = RandomFloats(&random_, 20 * c.width);
    x[4 * c.width + 3] = std::numeric_limits<float>::quiet_NaN();
    x[11 * c.width] = -std::numeric_limits<float>::infinity();
    x[19 * c.width + c.width - 1] = std::numeric_limits<float>::infinity();
    CompareQkv(c, x, {{0, 20, 0, {}}});
    for (int r = 0; r < 20; ++r) {
      EXPECT_EQ(finite_[r], r != 4 && r != 11 && r != 19) << r;
    }
    // Without keys there is nothing to tell.
    CompareQkv(c, x, {{0, 20, 0, {}}}, true, false);
    EXPECT_EQ(finite_, std::vector<bool>(20, true));
  }
}

// Finite keys whose sums over a block of 16 are not: an I8 cache has no scale
// for them, others take them.
TEST_P(FusedTest, ProjectQkvTellsKeysThatTheCacheCannotTake) {
  constexpr int kRows = 40;
  QkvCase c = {Type::kF32, Type::kF32, Type::kF32, 64, 3, 1, 48, 32};
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kI8}) {
    c.kv_type = type;
    random_.seed(11);
    const std::vector<float> x = RandomFloats(&random_, kRows * c.width);
    CompareQkv(c, x, {{0, kRows, 0, {}}}, true, true, 5e36f);
    const auto flagged = std::count(finite_.begin(), finite_.end(), false);
    EXPECT_EQ(flagged > 0, type == KvType::kI8) << KvTypeName(type);
    EXPECT_LT(flagged, kRows);
  }
}

TEST_P(FusedTest, FeedForward) {
  for (const int n : {1, 3, 9, 64, 70}) {
    const auto x = [&](int width) { return RandomFloats(&random_, n * width); };
    CompareFeedForward(Type::kQ4_1, Type::kQ4_1, Type::kQ4_1, 576, 1536,
                       x(576));
    CompareFeedForward(Type::kQ4_K, Type::kQ4_K, Type::kQ6_K, 256, 512, x(256));
    CompareFeedForward(Type::kQ5_0, Type::kF16, Type::kQ8_0, 64, 96, x(64));
    CompareFeedForward(Type::kF32, Type::kF32, Type::kF32, 31, 45, x(31));
    CompareFeedForward(Type::kQ8_0, Type::kQ8_0, Type::kBF16, 32, 33, x(32));
    CompareFeedForward(Type::kBF16, Type::kF16, Type::kQ4_0, 160, 32, x(160));
  }
}

TEST_P(FusedTest, FeedForwardOfNonfiniteRows) {
  std::vector<float> x = RandomFloats(&random_, 10 * 64);
  x[2 * 64 + 40] = std::numeric_limits<float>::infinity();
  x[7 * 64] = std::numeric_limits<float>::quiet_NaN();
  CompareFeedForward(Type::kQ4_0, Type::kQ4_0, Type::kQ4_0, 64, 128, x);
  CompareFeedForward(Type::kF16, Type::kF16, Type::kF16, 64, 40, x);
}

INSTANTIATE_TEST_SUITE_P(Backends, FusedTest, AllBackends(/*emulate=*/true),
                         BackendName);

}  // namespace
}  // namespace baton::kernels
