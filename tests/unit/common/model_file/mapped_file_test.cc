#include "common/model_file/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace baton {
namespace {

using ::testing::EndsWith;

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "mapped_file_test";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Path(const char* name) { return directory_ + "/" + name; }

  std::string directory_;
};

TEST_F(MappedFileTest, MapsContent) {
  std::ofstream(Path("file")) << "content";
  const auto file = MappedFile::Open(Path("file"));
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Span<const std::byte> bytes = (*file)->bytes();
  EXPECT_EQ(
      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
      "content");
}

TEST_F(MappedFileTest, EmptyFileHasNoBytes) {
  std::ofstream(Path("empty")).flush();
  const auto file = MappedFile::Open(Path("empty"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->bytes().empty());
}

TEST_F(MappedFileTest, MissingFileIsNotFound) {
  const absl::Status status = MappedFile::Open(Path("missing")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(status.message()),
            Path("missing") + ": cannot open: No such file or directory");
}

TEST_F(MappedFileTest, DirectoryIsRefused) {
  const absl::Status status = MappedFile::Open(directory_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), EndsWith(": not a regular file"));
}

TEST_F(MappedFileTest, PipeIsRefusedWithoutBlocking) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const absl::Status status = MappedFile::Open(Path("pipe")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), EndsWith(": not a regular file"));
}

TEST_F(MappedFileTest, DeviceIsRefused) {
  const absl::Status status = MappedFile::Open("/dev/zero").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace baton
