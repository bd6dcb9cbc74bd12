// baton-inspect: what a GGUF file holds, what its KV cache costs, and whether
// Baton serves it. Exit status 0: served; 1: refused; 2: not readable.
#include <cstdio>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "common/config/config_values.h"
#include "common/model_file/gguf.h"
#include "decode_worker/inspect/model_report.h"

namespace {

constexpr int kServed = 0;
constexpr int kRefused = 1;
constexpr int kUnreadable = 2;

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "baton-inspect: %s\n",
               std::string(status.message()).c_str());
  return kUnreadable;
}

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  std::string pool;
  bool json = false;
  CLI::App app("Shows what a GGUF file holds and whether Baton serves it.");
  app.add_option("file", path, "GGUF file")->required();
  app.add_flag("--json", json, "print JSON");
  app.add_option("--kv", pool,
                 "also tell how many tokens a KV pool of this size holds, for "
                 "instance 4GiB");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kServed : kUnreadable;
  }

  std::optional<uint64_t> pool_bytes;
  if (!pool.empty()) {
    const auto size = baton::ParseByteSize(pool);
    if (!size.ok()) {
      return Fail(absl::InvalidArgumentError(
          "--kv: " + std::string(size.status().message())));
    }
    pool_bytes = *size;
  }
  const auto file = baton::GgufFile::Open(path);
  if (!file.ok()) return Fail(file.status());
  const baton::ModelReport report = baton::ModelReport::Of(**file);
  const std::string text =
      json ? ToJson(report, pool_bytes) : ToText(report, pool_bytes);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return report.refusals.empty() ? kServed : kRefused;
}
