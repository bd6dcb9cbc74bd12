// One worker under two addresses, with real processes.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"

namespace baton::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string LogOf(const Process& process) {
  std::ifstream file(process.log_file());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

TEST(TwinWorkerTest, IsUsedOnceAndSaysSo) {
  std::string folder = ::testing::TempDir() + "baton-test-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto model = WriteTinyModel(folder, {});
  ASSERT_TRUE(model.ok()) << model.status();
  auto worker = Process::Start(
      {.binary = "baton-decode-worker",
       .flags = {"--model=" + *model, "--listen=0.0.0.0:0", "--insecure",
                 "--admin=127.0.0.1:0", "--threads=1", "--kv-blocks=64"},
       .name = "twin-decode",
       .work_dir = folder});
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_TRUE((*worker)->WaitReady(seconds(30)).ok()) << (*worker)->LogTail();
  const std::string address = (*worker)->address();
  const std::string port = address.substr(address.rfind(':'));
  auto router = Process::Start(
      {.binary = "baton-router",
       .flags = {"--model=" + *model, "--listen=127.0.0.1:0",
                 "--admin=127.0.0.1:0",
                 absl::StrCat("--decode=127.0.0.1", port, ",127.0.0.2", port)},
       .name = "twin-router",
       .work_dir = folder});
  ASSERT_TRUE(router.ok()) << router.status();
  ASSERT_TRUE((*router)->WaitReady(seconds(30)).ok()) << (*router)->LogTail();
  const auto stub = v1::Generation::NewStub(grpc::CreateChannel(
      (*router)->address(), grpc::InsecureChannelCredentials()));
  const auto states = [&] {
    grpc::ClientContext context;
    v1::GetClusterInfoResponse info;
    stub->GetClusterInfo(&context, {}, &info);
    std::vector<std::string> lines;
    for (const v1::WorkerInfo& member : info.workers()) {
      const bool other =
          member.detail() == absl::StrCat("the same worker as 127.0.0.",
                                          member.address()[8] == '1' ? 2 : 1,
                                          port, ", which is used");
      lines.push_back(member.state() + (other ? " named" : ""));
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  const std::vector<std::string> wanted = {"duplicate named", "ready"};
  // Settled: so for a while, and no session was opened meanwhile.
  const auto sessions = [&] { return Count(LogOf(**router), "session up"); };
  const MonotonicTime end = MonotonicNow() + seconds(60);
  MonotonicTime since = MonotonicNow();
  int opened = sessions();
  while (MonotonicNow() < std::min(since + seconds(2), end)) {
    if (states() != wanted || sessions() != opened) {
      since = MonotonicNow();
      opened = sessions();
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(states(), wanted) << (*router)->LogTail();
  EXPECT_EQ(sessions(), opened) << "the two fence each other for ever";
  EXPECT_LE(opened, 10);
  EXPECT_LT(since + seconds(2), end);

  v1::GenerateRequest request;
  request.mutable_token_ids()->add_ids(7);
  request.set_max_tokens(5);
  const Answer answer = RunRequest(*stub, request);
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(*(*router)->Metric("baton_worker_sessions", "state=\"duplicate\""),
            1);
}

}  // namespace
}  // namespace baton::testing
