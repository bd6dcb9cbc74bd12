#ifndef BATON_TESTS_UNIT_COMMON_ENGINE_POISONED_ENGINE_H_
#define BATON_TESTS_UNIT_COMMON_ENGINE_POISONED_ENGINE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "common/engine/engine.h"
#include "kernels/reference/reference_backend.h"
#include "tests/support/model_under_test.h"
#include "tests/support/tiny_model.h"

namespace baton {

// A token whose embedding is not finite.
inline constexpr TokenId kPoisoned = 100;

// An engine over a tiny model with that token, on the reference kernels.
class PoisonedEngine {
 protected:
  void LoadEngine(uint32_t max_rows) {
    const auto path = WriteTinyModel(
        testing::TempDir(), {.untied = true, .poisoned_token = kPoisoned});
    ASSERT_TRUE(path.ok()) << path.status();
    auto loaded = ModelUnderTest::Load(*path, kernels::MakeReferenceBackend(),
                                       {.load = {.allow_nonfinite = true}});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    loaded_ = *std::move(loaded);
    engine_ = std::make_unique<Engine>(loaded_.model.get(), max_rows);
  }

  ModelUnderTest loaded_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace baton

#endif  // BATON_TESTS_UNIT_COMMON_ENGINE_POISONED_ENGINE_H_
