// A client of real processes that stops reading: its blocks come back, and the
// others do not notice.
#include <gmock/gmock.h>

#include <thread>

#include "tests/integration/unharmed_cluster.h"

namespace baton::testing {
namespace {

constexpr int kChoices = 3;  // what the pool of the cluster holds

using std::chrono::milliseconds;
using std::chrono::seconds;

class SlowClientTest : public UnharmedClusterTest {
 protected:
  // Much more text than a client's smallest window.
  static v1::GenerateRequest LongRequest() {
    v1::GenerateRequest request = GoodRequest();
    request.set_max_tokens(240);
    request.set_n(kChoices);
    request.set_logprobs(20);
    return request;
  }
  static std::unique_ptr<v1::Generation::Stub> TightClient(
      const Process& router) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65'535);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::Generation::NewStub(grpc::CreateCustomChannel(
        router.address(), grpc::InsecureChannelCredentials(), arguments));
  }
  auto StartImpatientRouter() {
    return StartRouter(
        "impatient", {"--slow-client-timeout=1s", "--max-unread-bytes=64KiB"});
  }
  static bool WaitMetric(const Process& router, const std::string& name,
                         double value) {
    const MonotonicTime end = MonotonicNow() + seconds(20);
    while (MonotonicNow() < end) {
      const auto now = router.Metric(name);
      if (now.ok() && *now == value) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }
};

TEST_F(SlowClientTest, IsCutOffAndItsBlocksComeBack) {
  const auto router = StartImpatientRouter();
  ASSERT_NE(router, nullptr);
  const auto slow = TightClient(*router);
  grpc::ClientContext context;
  const auto reader = slow->Generate(&context, LongRequest());
  v1::GenerateEvent event;
  ASSERT_TRUE(reader->Read(&event)) << "it begins as any other";

  // Others are served while it does not read.
  const auto other = TightClient(*router);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(Ask(*other, GoodRequest()).ok());
  }
  ASSERT_TRUE(WaitMetric(*router, "baton_slow_clients_total", 1))
      << router->LogTail();
  EXPECT_TRUE(WaitMetric(*router, "baton_active_requests", 0));
  EXPECT_EQ(cluster_->WaitPoolsIdle(seconds(10)), absl::OkStatus());

  size_t tokens = 0;
  while (reader->Read(&event)) tokens += event.token_ids_size();
  EXPECT_LT(tokens, kChoices * 240u);
  // Cut off while the answer grew, it can fetch the reason; when the answer
  // was whole already and only its end lay there, the call is cancelled.
  const grpc::Status status = reader->Finish();
  if (status.error_code() != grpc::StatusCode::CANCELLED) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(),
                ::testing::StartsWith("client: reads too slowly ("));
  }
  EXPECT_TRUE(WaitMetric(*router, "baton_unread_bytes", 0));
  ExpectUnharmed();
}

// The whole is much more than may wait. A test that comes to a halt is slow
// itself, and tries again.
TEST_F(SlowClientTest, AReadingOneGetsTheSameAnswerWhole) {
  constexpr int kTries = 5;
  const auto router = StartImpatientRouter();
  ASSERT_NE(router, nullptr);
  const auto client = TightClient(*router);
  grpc::Status status;
  size_t tokens = 0;
  for (int cut_off = 0; cut_off < kTries; ++cut_off) {
    grpc::ClientContext context;
    const auto reader = client->Generate(&context, LongRequest());
    v1::GenerateEvent event;
    tokens = 0;
    while (reader->Read(&event)) tokens += event.token_ids_size();
    status = reader->Finish();
    EXPECT_EQ(*router->Metric("baton_slow_clients_total"),
              status.ok() ? cut_off : cut_off + 1);
    if (status.ok()) break;
  }
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(tokens, kChoices * 240u);
}

}  // namespace
}  // namespace baton::testing
