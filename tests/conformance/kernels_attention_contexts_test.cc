// Attention of the last rows of long contexts: a covering set of cache type,
// query heads per KV head, context, head dimension, rows, instruction set and
// threads.
#include <algorithm>
#include <cstdio>
#include <iterator>

#include "tests/conformance/kernels_conformance.h"

namespace baton::kernels {
namespace {

constexpr int kContexts[] = {1,   2,   15,  16,  17,   63,   64,   65,
                             127, 511, 512, 513, 1024, 1537, 4999, 5000};
constexpr int kHeadDims[] = {64, 128, 80, 20, 16};
constexpr int kLayers = 2;
constexpr int kLayer = 1;
constexpr int kMostThreads = 4;

class ContextsTest : public testing::TestWithParam<KvType> {
 protected:
  struct Runner {
    Isa isa;
    std::unique_ptr<Backend> by_threads[kMostThreads];
  };

  void SetUp() override {
    for (const Isa isa : kIsas) {
      if (!IsSupported(isa)) {
        std::printf("cpu-%s: not on this machine, left out\n",
                    std::string(IsaName(isa)).c_str());
        continue;
      }
      Runner runner = {.isa = isa, .by_threads = {}};
      for (int threads = 1; threads <= kMostThreads; ++threads) {
        auto backend = MakeCpuBackend({.isa = isa, .threads = threads});
        ASSERT_TRUE(backend.ok()) << backend.status();
        runner.by_threads[threads - 1] = *std::move(backend);
      }
      runners_.push_back(std::move(runner));
    }
  }

  // Every runner, with a number of threads that goes round.
  void Compare(int group, int context, int head_dim, int rows) {
    const int kv_heads = 1 + case_ / kMostThreads % 2;
    const int heads = kv_heads * group;
    SCOPED_TRACE(testing::Message()
                 << heads << "/" << kv_heads << " heads of " << head_dim << ", "
                 << rows << " rows at " << context);
    const KvLayout layout = {kLayers, kv_heads, head_dim, GetParam()};
    const size_t count = (context + KvLayout::kTokens - 1) / KvLayout::kTokens;
    std::vector<std::byte> storage(count * layout.block_bytes(),
                                   std::byte{0xff});
    std::vector<std::byte*> blocks;
    for (size_t b = 0; b < count; ++b) {
      blocks.push_back(&storage[(count - 1 - b) * layout.block_bytes()]);
    }
    const size_t kv_floats = size_t{1} * context * kv_heads * head_dim;
    const auto k = RandomFloats(&random_, kv_floats);
    const auto v = RandomFloats(&random_, kv_floats);
    const SequenceRows all = {0, context, 0, blocks};
    reference_->StoreKv(layout, kLayer, k.data(), v.data(), {&all, 1});

    const SequenceRows last = {0, rows, context - rows, blocks};
    const auto q =
        RandomFloats(&random_, size_t{1} * rows * heads * head_dim, 2.0f);
    std::vector<float> expected(q.size());
    reference_->Attention(layout, kLayer, q.data(), heads, {&last, 1},
                          expected.data());
    for (size_t r = 0; r < runners_.size(); ++r) {
      const Runner& runner = runners_[r];
      const int threads = 1 + (case_ + static_cast<int>(r)) % kMostThreads;
      std::vector<float> actual(q.size());
      runner.by_threads[threads - 1]->Attention(layout, kLayer, q.data(), heads,
                                                {&last, 1}, actual.data());
      EXPECT_TRUE(SameValues(expected, actual))
          << IsaName(runner.isa) << ", " << threads << " threads";
    }
    ++case_;
  }

  std::unique_ptr<Backend> reference_ = MakeReferenceBackend();
  std::vector<Runner> runners_;
  std::mt19937 random_{20240607};
  int case_ = 0;
};

TEST_P(ContextsTest, EqualTheReference) {
  size_t turn = 0;
  for (const int context : kContexts) {
    for (int group = 1; group <= 9; ++group, ++turn) {
      const int head_dim = kHeadDims[turn % std::size(kHeadDims)];
      const int most = context > 1024 ? 2 : turn % 7 == 0 ? 40 : 5;
      const int rows = turn % 2 == 0 ? 1 : std::min(context, most);
      Compare(group, context, head_dim, rows);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(CacheTypes, ContextsTest,
                         testing::ValuesIn(kAllKvTypes), [](const auto& test) {
                           return std::string(KvTypeName(test.param));
                         });

}  // namespace
}  // namespace baton::kernels
