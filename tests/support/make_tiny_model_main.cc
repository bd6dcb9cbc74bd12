#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "tests/support/tiny_model.h"

int main(int argc, char** argv) {
  baton::TinyModelOptions options;
  std::string directory = ".";
  bool q4_1 = false;
  CLI::App app("Writes a tiny deterministic llama GGUF and prints its path.");
  app.add_option("directory", directory, "where to write it")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_flag("--q4-1", q4_1, "Q4_1 block matrices instead of F32");
  app.add_option("--context", options.context, "context length in tokens");
  app.add_option("--layers", options.layers, "transformer layers");
  app.add_option("--vocabulary", options.vocabulary, "tokens")
      ->check(CLI::Range(272, 1 << 20));
  app.add_flag("--untied", options.untied, "separate output matrix");
  app.add_option("--seed", options.seed, "of the weights");
  CLI11_PARSE(app, argc, argv);

  using Weights = baton::TinyModelOptions::Weights;
  options.weights = q4_1 ? Weights::kQ4_1 : Weights::kF32;
  const absl::StatusOr<std::string> path =
      baton::WriteTinyModel(directory, options);
  if (!path.ok()) {
    std::fprintf(stderr, "make_tiny_model: %s\n",
                 std::string(path.status().message()).c_str());
    return 1;
  }
  std::printf("%s\n", path->c_str());
}
