#include "common/model_file/mapping_guard.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "common/model_file/mapped_file.h"

namespace baton {
namespace {

constexpr size_t kPage = 4096;

class MappingGuardDeathTest : public ::testing::Test {
 protected:
  MappingGuardDeathTest() : path_(::testing::TempDir() + "mapping_guard") {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    std::ofstream(path_) << std::string(4 * kPage, 'x');
  }
  ~MappingGuardDeathTest() override { std::filesystem::remove(path_); }

  static int Sum(absl::Span<const std::byte> bytes) {
    int sum = 0;
    for (const std::byte b : bytes) sum += static_cast<int>(b);
    return sum;
  }

  const std::string path_;
};

TEST_F(MappingGuardDeathTest, AFileThatShrinksEndsTheProcess) {
  const auto read_cut_file = [&] {
    const auto file = MappedFile::Open(path_);
    std::filesystem::resize_file(path_, kPage);
    Sum((*file)->bytes().subspan(0, kPage));  // still there
    std::_Exit(Sum((*file)->bytes()) == 0 ? 0 : 1);
  };
  EXPECT_EXIT(read_cut_file(),
              ::testing::ExitedWithCode(MappingGuard::kExitCode),
              "mapping_guard: model file changed while it was read\n");
}

TEST_F(MappingGuardDeathTest, OtherBusErrorsStayWhatTheyAre) {
  const auto read_elsewhere = [&] {
    const auto file = MappedFile::Open(path_);
    const std::string other = path_ + ".other";
    std::ofstream(other) << std::string(kPage, 'y');
    std::FILE* const opened = std::fopen(other.c_str(), "r");
    void* const mapped =
        mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, fileno(opened), 0);
    std::filesystem::resize_file(other, 0);
    std::_Exit(Sum({static_cast<const std::byte*>(mapped), kPage}) == 0 ? 0
                                                                        : 1);
  };
  EXPECT_DEATH(read_elsewhere(), "");
  EXPECT_EXIT(
      {
        const auto file = MappedFile::Open(path_);
        std::_Exit(7);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST_F(MappingGuardDeathTest, MoreMappingsThanGuardsAreRead) {
  std::vector<std::unique_ptr<MappedFile>> files;
  for (int i = 0; i < 40; ++i) {
    auto file = MappedFile::Open(path_);
    ASSERT_TRUE(file.ok());
    files.push_back(*std::move(file));
  }
  for (const auto& file : files) {
    EXPECT_EQ(Sum(file->bytes()), static_cast<int>(4 * kPage * 'x'));
  }
  files.clear();
  EXPECT_EXIT(
      {
        const auto file = MappedFile::Open(path_);
        std::filesystem::resize_file(path_, 0);
        std::_Exit(Sum((*file)->bytes()));
      },
      ::testing::ExitedWithCode(MappingGuard::kExitCode), "model file changed")
      << "guards that were given back serve again";
}

}  // namespace
}  // namespace baton
