#include "common/model/model.h"

#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/reference_backend.h"
#include "tests/support/block_quantizer.h"
#include "tests/support/model_under_test.h"
#include "tests/support/profiling_backend.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

using testing::HasSubstr;
using Weights = TinyModelOptions::Weights;

absl::StatusOr<ModelUnderTest> Load(const GgufWriter& writer,
                                    const ModelOptions& options = {}) {
  const std::string content = writer.Serialize();
  const auto file = GgufFile::Parse(
      {reinterpret_cast<const std::byte*>(content.data()), content.size()},
      "memory");
  if (!file.ok()) return file.status();
  ModelUnderTest loaded{.backend = kernels::MakeReferenceBackend(),
                        .model = nullptr};
  auto model = Model::Load(**file, loaded.backend.get(), options);
  if (!model.ok()) return model.status();
  loaded.model = *std::move(model);
  return loaded;
}

std::vector<float> LogitsOf(const Model& model,
                            const std::vector<TokenId>& tokens, int chunk) {
  std::vector<float> all;
  ForEachLogits(model, tokens, chunk, 0,
                [&](int, absl::Span<const float> logits) {
                  all.insert(all.end(), logits.begin(), logits.end());
                });
  return all;
}

const std::vector<TokenId>& Tokens() {
  static const auto& tokens = *new std::vector<TokenId>{
      1,  104, 50, 107, 3,  200, 17, 17, 88, 271, 42, 5,
      19, 260, 2,  9,   77, 31,  64, 8,  91, 133, 0,  12};
  return tokens;
}

TEST(ModelTest, LoadsFromAMappedFileAndGivesItsPagesBack) {
  const auto path =
      WriteTinyModel(testing::TempDir(), {.weights = Weights::kQ4_1});
  ASSERT_TRUE(path.ok()) << path.status();
  const auto mapped =
      ModelUnderTest::Load(*path, kernels::MakeReferenceBackend(), {});
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  const auto in_memory = Load(TinyModel({.weights = Weights::kQ4_1}));
  ASSERT_TRUE(in_memory.ok());
  EXPECT_EQ(mapped->model->fingerprint(), in_memory->model->fingerprint());
  EXPECT_EQ(LogitsOf(*mapped->model, Tokens(), 24),
            LogitsOf(*in_memory->model, Tokens(), 24));
}

TEST(ModelTest, KnowsItsNumbers) {
  const auto loaded = Load(TinyModel({}), {.kv_type = kernels::KvType::kF32});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->model->config().layers, 2);
  EXPECT_EQ(loaded->model->kv_layout(),
            (kernels::KvLayout{.layers = 2,
                               .kv_heads = 2,
                               .head_dim = 16,
                               .type = kernels::KvType::kF32}));
  EXPECT_EQ(loaded->model->backend(), loaded->backend.get());
  // 272 x 64 embedding, per layer 4 + 2 x 2 + 4 and 3 x 8 matrices of 1024.
  const size_t weights = 272 * 64 + 2 * (12 + 24) * 1024 + 5 * 64;
  EXPECT_GE(loaded->model->weight_bytes(), weights * sizeof(float));
}

TEST(ModelTest, FingerprintChangesWithWhatMakesKvDifferent) {
  std::set<std::string> fingerprints;
  const auto add = [&](const GgufWriter& writer, const ModelOptions& options) {
    const auto loaded = Load(writer, options);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->model->fingerprint().size(), 32u);
    fingerprints.insert(loaded->model->fingerprint());
  };
  add(TinyModel({}), {});
  add(TinyModel({}), {});
  EXPECT_EQ(fingerprints.size(), 1u);
  add(TinyModel({}), {.kv_type = kernels::KvType::kF32});
  add(TinyModel({}), {.kv_type = kernels::KvType::kI8});
  add(TinyModel({.weights = Weights::kQ4_1}), {});
  add(TinyModel({.seed = 37}), {});
  add(TinyModel({.context = 512}), {});
  add(TinyModel({}), {.load = {.format = WeightFormat::kInt8}});
  EXPECT_EQ(fingerprints.size(), 7u);
}

TEST(ModelTest, ChunksGiveTheSameBits) {
  for (const Weights weights : {Weights::kF32, Weights::kQ4_1}) {
    const auto loaded = Load(TinyModel({.weights = weights}));
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const std::vector<float> whole = LogitsOf(*loaded->model, Tokens(), 24);
    for (const int chunk : {1, 5, 16}) {
      EXPECT_EQ(LogitsOf(*loaded->model, Tokens(), chunk), whole) << chunk;
    }
  }
}

TEST(ModelTest, UntiedOutputIsUsed) {
  const auto tied = Load(TinyModel({}));
  const auto untied = Load(TinyModel({.untied = true}));
  ASSERT_TRUE(tied.ok() && untied.ok());
  EXPECT_NE(LogitsOf(*tied->model, {1, 2}, 2),
            LogitsOf(*untied->model, {1, 2}, 2));
}

TEST(ModelTest, RopeFactorsAreUsedAndChecked) {
  const auto with_factor = [](float factor) {
    GgufWriter writer = TinyModel({});
    std::vector<float> factors(8, 1);
    factors[2] = factor;
    writer.AddTensor("rope_freqs.weight", {8}, kGgmlF32,
                     EncodeTensor(kGgmlF32, factors));
    return writer;
  };
  const auto plain = Load(TinyModel({}));
  const auto ones = Load(with_factor(1));
  const auto scaled = Load(with_factor(4));
  ASSERT_TRUE(plain.ok() && ones.ok() && scaled.ok());
  EXPECT_EQ(LogitsOf(*plain->model, Tokens(), 24),
            LogitsOf(*ones->model, Tokens(), 24));
  EXPECT_NE(LogitsOf(*plain->model, Tokens(), 24),
            LogitsOf(*scaled->model, Tokens(), 24));
  EXPECT_THAT(std::string(Load(with_factor(0)).status().message()),
              HasSubstr("rope_freqs.weight: value 2 (got 0, allowed finite "
                        "and above 0)"));
}

TEST(ModelTest, WantedLogitsComeInSpanOrder) {
  const auto loaded = Load(TinyModel({}));
  ASSERT_TRUE(loaded.ok());
  const Model& model = *loaded->model;
  const std::vector<TokenId> first = {1, 104, 50};
  const std::vector<TokenId> second = {7};
  const std::vector<TokenId> third = {9, 10};
  const SequenceKv kv[] = {{model.kv_layout(), 16},
                           {model.kv_layout(), 16},
                           {model.kv_layout(), 16}};
  using Logits = ForwardSpan::Logits;
  const std::vector<ForwardSpan> spans = {
      {first, 0, kv[0].blocks(), Logits::kAll},
      {second, 0, kv[1].blocks(), Logits::kNone},
      {third, 0, kv[2].blocks(), Logits::kLast}};
  bool finite[3] = {};
  const auto scratch = model.NewScratch(6);
  model.Forward(spans, scratch.get(), absl::MakeSpan(finite));
  EXPECT_THAT(finite, testing::Each(true));

  std::vector<float> expected = LogitsOf(model, first, 3);
  const std::vector<float> of_third = LogitsOf(model, third, 2);
  expected.insert(expected.end(), of_third.begin() + 272, of_third.end());
  const float* logits = model.Logits(scratch.get(), 0, 4);
  EXPECT_EQ(std::vector<float>(logits, logits + 4 * 272), expected);
  // Any part of them, in any order.
  for (const int row : {2, 0, 3, 1}) {
    logits = model.Logits(scratch.get(), row, row == 3 ? 1 : 2);
    EXPECT_EQ(logits[271], expected[row * 272 + 271]);
    EXPECT_EQ(logits[0], expected[row * 272]);
  }
}

TEST(ModelTest, LastLayerTakesOnlyRowsWithLogits) {
  const std::string content = TinyModel({}).Serialize();
  const auto file = GgufFile::Parse(
      {reinterpret_cast<const std::byte*>(content.data()), content.size()},
      "memory");
  ASSERT_TRUE(file.ok());
  ProfilingBackend backend(kernels::MakeReferenceBackend());
  const auto model = Model::Load(**file, &backend, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const SequenceKv kv((*model)->kv_layout(), 32);
  const auto scratch = (*model)->NewScratch(24);
  const auto calls = [&](ForwardSpan::Logits logits) {
    backend.Reset();
    bool finite = false;
    const ForwardSpan span = {Tokens(), 0, kv.blocks(), logits};
    (*model)->Forward({&span, 1}, scratch.get(), {&finite, 1});
    EXPECT_TRUE(finite);
    std::map<std::string, int64_t> by_kernel;
    for (const KernelTime& time : backend.times()) {
      EXPECT_TRUE(time.bytes == 0 || time.seconds > 0) << time.kernel;
      by_kernel[std::string(time.kernel)] = time.calls;
    }
    return by_kernel;
  };
  using Logits = ForwardSpan::Logits;
  auto all = calls(Logits::kAll);
  EXPECT_EQ(all["qkv"], 2);
  EXPECT_EQ(all["attention"], 2);
  EXPECT_EQ(all["out"], 2);
  EXPECT_EQ(all["ffn"], 2);
  auto last = calls(Logits::kLast);
  EXPECT_EQ(last["qkv"], 3);  // keys and values of all, the query of one
  EXPECT_EQ(last["attention"], 2);
  auto none = calls(Logits::kNone);
  EXPECT_EQ(none["qkv"], 2);
  EXPECT_EQ(none["attention"], 1);
  EXPECT_EQ(none["out"], 1);
  EXPECT_EQ(none["ffn"], 1);
}

TEST(ModelTest, NonfiniteRowsAreToldPerSpan) {
  const auto loaded = Load(TinyModel({.untied = true, .poisoned_token = 100}),
                           {.load = {.allow_nonfinite = true}});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Model& model = *loaded->model;
  const std::vector<TokenId> good = {1, 104};
  const std::vector<TokenId> bad = {1, 100, 3};
  const SequenceKv kv[] = {{model.kv_layout(), 16}, {model.kv_layout(), 16}};
  const std::vector<ForwardSpan> spans = {{bad, 0, kv[0].blocks()},
                                          {good, 0, kv[1].blocks()}};
  bool finite[2] = {true, false};
  const auto scratch = model.NewScratch(5);
  model.Forward(spans, scratch.get(), absl::MakeSpan(finite));
  EXPECT_FALSE(finite[0]);
  EXPECT_TRUE(finite[1]);
  const std::vector<float> alone = LogitsOf(model, good, 2);
  const float* logits = model.Logits(scratch.get(), 1, 1);
  EXPECT_EQ(std::vector<float>(logits, logits + 272),
            std::vector<float>(alone.begin() + 272, alone.end()));
}

TEST(ModelTest, NonfiniteWeightsAreRefused) {
  const auto loaded = Load(TinyModel({.untied = true, .poisoned_token = 100}));
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(loaded.status().message()),
              HasSubstr("tensor token_embd.weight: non-finite at 6400"));
}

// Its hash takes seconds, the first wrong tensor is found at once.
TEST(ModelTest, AnErrorDoesNotWaitForTheHash) {
  const std::string path = testing::TempDir() + "poisoned_and_large.gguf";
  ASSERT_TRUE(
      TinyModel({.untied = true, .poisoned_token = 100}).WriteTo(path).ok());
  std::filesystem::resize_file(path, uint64_t{8} << 30);  // sparse
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto backend = kernels::MakeReferenceBackend();
  EXPECT_FALSE(Model::Load(**file, backend.get(), {}).ok());
  EXPECT_EQ((*file)->Sha256([] { return true; }), "") << "it was computed";
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace baton
