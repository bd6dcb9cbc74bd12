#ifndef BATON_TESTS_FUZZ_SEED_WRITER_H_
#define BATON_TESTS_FUZZ_SEED_WRITER_H_

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/check.h"

namespace baton::fuzz {

// What FuzzInput reads, in the same order.
class Seed {
 public:
  template <class T>
  Seed& Number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    bytes_.append(bytes, sizeof(T));
    return *this;
  }
  Seed& Byte(int value) { return Number(static_cast<uint8_t>(value)); }
  Seed& Bytes(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  Seed& Chunk(std::string_view bytes) {
    return Number(static_cast<uint16_t>(bytes.size())).Bytes(bytes);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Corpus {
 public:
  explicit Corpus(std::string root) : root_(std::move(root)) {}

  void Add(std::string_view fuzzer, std::string_view name,
           std::string_view bytes) {
    const std::filesystem::path folder =
        std::filesystem::path(root_) / std::string(fuzzer);
    std::filesystem::create_directories(folder);
    std::ofstream file(folder / std::string(name), std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    BATON_CHECK(file.good());
  }
  void Add(std::string_view fuzzer, std::string_view name, const Seed& seed) {
    Add(fuzzer, name, seed.bytes());
  }

 private:
  std::string root_;
};

// tests/fuzz/corpus: seeds of files and text, and of messages.
void WriteTextSeeds(Corpus* corpus);
void WriteMessageSeeds(Corpus* corpus);

}  // namespace baton::fuzz

#endif  // BATON_TESTS_FUZZ_SEED_WRITER_H_
