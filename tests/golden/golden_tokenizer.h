#ifndef BATON_TESTS_GOLDEN_GOLDEN_TOKENIZER_H_
#define BATON_TESTS_GOLDEN_GOLDEN_TOKENIZER_H_

#include <fstream>
#include <memory>
#include <string>

#include "common/model_file/gguf.h"
#include "common/tokenizer/tokenizer.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/model_under_test.h"

namespace baton {

inline nlohmann::json GoldenJson(const std::string& name) {
  std::ifstream file(std::string(BATON_GOLDEN_DATA "/") + name);
  return nlohmann::json::parse(file);
}

// The real model's file and tokenizer, opened once per test program.
class SmolLm2TextTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto file = GgufFile::Open(RealModelPath());
    ASSERT_TRUE(file.ok())
        << file.status()
        << "\nThe golden tests need the real model: tests/run.sh fetches it, "
           "or set BATON_MODEL_DIR to the folder that holds it.";
    auto tokenizer = Tokenizer::FromGguf(**file);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    file_ = *std::move(file);
    tokenizer_ = *std::move(tokenizer);
  }

  static void TearDownTestSuite() {
    file_.reset();
    tokenizer_.reset();
  }

  void SetUp() override { ASSERT_NE(tokenizer_, nullptr); }

  static const GgufFile& file() { return *file_; }
  static const Tokenizer& tokenizer() { return *tokenizer_; }

 private:
  static inline std::unique_ptr<GgufFile> file_;
  static inline std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace baton

#endif  // BATON_TESTS_GOLDEN_GOLDEN_TOKENIZER_H_
