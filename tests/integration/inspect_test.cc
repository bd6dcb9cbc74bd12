// The baton-inspect binary: what it prints and how it ends.
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Outcome {
  int status;
  std::string output;  // stdout and stderr
};

Outcome Inspect(const std::string& arguments) {
  const std::string command =
      std::string(BATON_INSPECT) + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  char buffer[4096];
  while (const size_t size = fread(buffer, 1, sizeof(buffer), pipe)) {
    output.append(buffer, size);
  }
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

std::string Write(const std::string& name, const GgufWriter& writer) {
  const std::string path = testing::TempDir() + "/inspect-" + name + ".gguf";
  EXPECT_TRUE(writer.WriteTo(path).ok());
  return path;
}

GgufWriter Quantised() {
  return TinyModel({.weights = TinyModelOptions::Weights::kQ4_1});
}

TEST(InspectTest, PrintsTextAndEndsWellForAServedModel) {
  const Outcome outcome = Inspect(Write("good", Quantised()) + " --kv 1MiB");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("architecture    llama\n"));
  EXPECT_THAT(outcome.output, HasSubstr("weights file    "));
  EXPECT_THAT(outcome.output, HasSubstr("1.0 MiB hold 4096 tokens"));
  EXPECT_THAT(outcome.output, HasSubstr("served          yes\n"));
}

TEST(InspectTest, JsonHasTheSameFacts) {
  const Outcome outcome =
      Inspect("--json --kv 8KiB " + Write("good", Quantised()));
  EXPECT_EQ(outcome.status, 0);
  const auto json = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(json["architecture"], "llama");
  EXPECT_EQ(json["served"], true);
  EXPECT_EQ(json["config"]["heads"], 4);
  EXPECT_EQ(json["tensor_types"][0]["type"], "Q4_1");
  EXPECT_EQ(json["kv_cache"]["f16"]["bytes_per_token"], 256);
  EXPECT_EQ(json["kv_cache"]["f16"]["pool_tokens"], 32);
  EXPECT_EQ(json["kv_cache"]["i8"]["bytes_per_token"], 160);
  EXPECT_EQ(json["kv_cache"]["i8"]["pool_tokens"], 48);
  EXPECT_EQ(json["tokenizer"]["eos"], 2);
}

TEST(InspectTest, TellsWhatInt8WeightsWouldTake) {
  const std::string path = Write("float", TinyModel({}));
  EXPECT_THAT(Inspect(path).output, HasSubstr(", 7 matrices made int8\n"));
  const auto json = nlohmann::json::parse(Inspect("--json " + path).output);
  EXPECT_EQ(json["weights"]["int8"]["int8_matrices"], 7);
  EXPECT_LT(json["weights"]["int8"]["memory_bytes"],
            json["weights"]["file"]["memory_bytes"]);
}

TEST(InspectTest, JsonSurvivesInvalidUtf8) {
  GgufWriter writer = Quantised();
  writer.RemoveKey("general.name");
  writer.AddString("general.name", "\xff\xfe");
  const Outcome outcome = Inspect("--json " + Write("utf8", writer));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_FALSE(
      nlohmann::json::parse(outcome.output, nullptr, false).is_discarded());
}

TEST(InspectTest, RefusedModelsEndWithOneAndSayWhy) {
  GgufWriter writer = Quantised();
  writer.RemoveTensor("output_norm.weight");
  const std::string path = Write("refused", writer);
  const Outcome text = Inspect(path);
  EXPECT_EQ(text.status, 1);
  EXPECT_THAT(text.output, HasSubstr("refused         " + path +
                                     ": tensor output_norm.weight: missing"));
  const Outcome json = Inspect("--json " + path);
  EXPECT_EQ(json.status, 1);
  EXPECT_EQ(nlohmann::json::parse(json.output)["served"], false);
}

TEST(InspectTest, UnreadableFilesEndWithTwoAndTheReadersLine) {
  const std::string path = testing::TempDir() + "/inspect-garbage.gguf";
  std::ofstream(path) << "PK garbage that is longer than any GGUF header";
  const Outcome garbage = Inspect(path);
  EXPECT_EQ(garbage.status, 2);
  EXPECT_THAT(garbage.output, StartsWith("baton-inspect: " + path + "@0: "));

  const Outcome missing = Inspect("/nowhere/model.gguf");
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.output, HasSubstr("/nowhere/model.gguf"));
}

TEST(InspectTest, BadFlagsEndWithTwo) {
  const std::string path = Write("good", Quantised());
  const Outcome size = Inspect(path + " --kv 4XB");
  EXPECT_EQ(size.status, 2);
  EXPECT_THAT(size.output, HasSubstr("--kv: expected size like 512MiB"));
  EXPECT_EQ(Inspect("").status, 2);
  EXPECT_EQ(Inspect("--help").status, 0);
}

}  // namespace
}  // namespace baton
