#include <cstdio>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "tests/support/synthetic_model.h"

int main(int argc, char** argv) {
  using Weights = baton::SyntheticModelOptions::Weights;
  baton::SyntheticModelOptions options;
  std::string directory = ".";
  CLI::App app(
      "Writes a llama GGUF with random weights, of the shape of a 1.1 B model "
      "unless told otherwise, and prints its path.");
  app.add_option("directory", directory, "where to write it")
      ->required()
      ->check(CLI::ExistingDirectory);
  const std::map<std::string, Weights> names = {{"f32", Weights::kF32},
                                                {"f16", Weights::kF16},
                                                {"q4_0", Weights::kQ4_0},
                                                {"q4_1", Weights::kQ4_1},
                                                {"q8_0", Weights::kQ8_0}};
  app.add_option("--weights", options.weights, "type of every matrix")
      ->transform(CLI::CheckedTransformer(names));
  app.add_option("--layers", options.layers, "transformer layers");
  app.add_option("--width", options.width, "of the residual stream");
  app.add_option("--heads", options.heads, "query heads");
  app.add_option("--kv-heads", options.kv_heads, "heads of K and V");
  app.add_option("--ffn", options.ffn_width, "width of the feed-forward part");
  app.add_option("--vocabulary", options.vocabulary, "tokens");
  app.add_option("--context", options.context, "context length in tokens");
  app.add_option("--seed", options.seed, "of the weights");
  CLI11_PARSE(app, argc, argv);

  const absl::StatusOr<std::string> path =
      baton::WriteSyntheticModel(directory, options);
  if (!path.ok()) {
    std::fprintf(stderr, "make_synthetic_model: %s\n",
                 std::string(path.status().message()).c_str());
    return 1;
  }
  std::printf("%s\n", path->c_str());
}
