#include <gtest/gtest.h>

#include <random>

#include "tests/unit/common/kv_cache/prefix_cache_model.h"

namespace baton {
namespace {

class RandomPrefixCache : public testing::TestWithParam<uint32_t> {};

TEST_P(RandomPrefixCache, AnswersAsThePlainestCacheDoes) {
  std::mt19937 random(GetParam());
  PrefixCacheModel model(1 + random() % 40, [&](uint32_t below) {
    return static_cast<uint32_t>(random() % below);
  });
  for (int step = 0; step < 2000; ++step) {
    SCOPED_TRACE(step);
    model.Step();
    model.Check();
  }
  model.Finish();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrefixCache, testing::Range(1u, 21u));

}  // namespace
}  // namespace baton
