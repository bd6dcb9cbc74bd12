#ifndef BATON_TESTS_GOLDEN_SMOLLM2_FIXTURE_H_
#define BATON_TESTS_GOLDEN_SMOLLM2_FIXTURE_H_

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "nlohmann/json.hpp"
#include "tests/support/model_under_test.h"

namespace baton {

inline constexpr char kRealModelHint[] =
    "The golden tests need the real model: tests/run.sh fetches it, or set "
    "BATON_MODEL_DIR to the folder that holds it.";

inline nlohmann::json GoldenJson(const std::string& name) {
  std::ifstream file(std::string(BATON_GOLDEN_DATA "/") + name);
  return nlohmann::json::parse(file);
}

inline std::unique_ptr<kernels::Backend> FastBackend() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  auto backend = kernels::MakeCpuBackend({.threads = std::clamp(cores, 1, 8)});
  return backend.ok() ? *std::move(backend) : nullptr;
}

// SmolLM2-135M-Instruct on the fastest backend, loaded once per test program.
class SmolLm2Test : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = ModelUnderTest::Load(RealModelPath(), FastBackend(), {});
    ASSERT_TRUE(loaded.ok()) << loaded.status() << "\n" << kRealModelHint;
    loaded_ = new ModelUnderTest(*std::move(loaded));
  }

  static void TearDownTestSuite() {
    delete loaded_;
    loaded_ = nullptr;
  }

  static const Model& model() { return *loaded_->model; }

 private:
  static inline ModelUnderTest* loaded_ = nullptr;
};

}  // namespace baton

#endif  // BATON_TESTS_GOLDEN_SMOLLM2_FIXTURE_H_
