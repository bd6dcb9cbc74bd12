// The real binaries with mutual TLS: they answer as without it, follow new
// certificates without a restart, and refuse whoever lacks the certificate or
// the role for what they ask.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "proto/decode.grpc.pb.h"
#include "proto/kv_link.grpc.pb.h"
#include "proto/prefill.grpc.pb.h"
#include "tests/support/certificates.h"
#include "tests/support/proc_state.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"

namespace baton::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

v1::GenerateRequest Request(int prompt_tokens) {
  v1::GenerateRequest request;
  for (int i = 0; i < prompt_tokens; ++i) {
    request.mutable_token_ids()->add_ids(3 + i % 50);
  }
  request.set_max_tokens(6);
  request.set_ignore_eos(true);
  request.mutable_sampling()->set_temperature(0);
  return request;
}

// A port that nobody had a moment ago.
std::string FreeAddress() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(name);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), length), 0);
  getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length);
  close(fd);
  return absl::StrCat("127.0.0.1:", ntohs(name.sin_port));
}

// A process with these files, whoever it talks to.
std::shared_ptr<grpc::Channel> ChannelWith(const std::string& address,
                                           const CertificateFiles& files) {
  ChannelOptions options;
  options.own_connection = true;
  if (!files.ca.empty()) {
    auto tls = TlsCredentials::Load(files, std::nullopt);
    EXPECT_TRUE(tls.ok()) << tls.status();
    if (tls.ok()) options.tls = *std::move(tls);
  }
  return MakeChannel(address, options);
}

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + seconds(20));
}

grpc::Status AskRouter(const std::string& address,
                       const CertificateFiles& files) {
  const auto stub = v1::Generation::NewStub(ChannelWith(address, files));
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::ListModelsResponse response;
  return stub->ListModels(&context, {}, &response);
}

// Opens a bidirectional call and sends one message.
template <class Stub, class Message>
grpc::Status OpenStream(Stub stub, const Message& message) {
  grpc::ClientContext context;
  SetDeadline(&context);
  auto stream = stub(&context);
  stream->Write(message);
  stream->WritesDone();
  return stream->Finish();
}

grpc::Status OpenDecodeSession(const std::string& address,
                               const CertificateFiles& files) {
  const auto stub = v1::DecodeWorker::NewStub(ChannelWith(address, files));
  v1::DecodeCommand command;
  command.mutable_hello()->set_router_epoch(1);
  return OpenStream([&](auto* context) { return stub->Session(context); },
                    command);
}

grpc::Status OpenLink(const std::string& address,
                      const CertificateFiles& files) {
  const auto stub = v1::KvLink::NewStub(ChannelWith(address, files));
  v1::LinkPiece piece;
  piece.set_header("x");
  return OpenStream([&](auto* context) { return stub->Link(context); }, piece);
}

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    TinyModelOptions tiny;
    auto model = WriteTinyModel(::testing::TempDir(), tiny);
    EXPECT_TRUE(model.ok()) << model.status();
    options_.model = *model;
    options_.worker_flags = {"--threads=1", "--kv-blocks=64"};
    options_.decode_flags = {"--disaggregation=always"};
  }

  void StartWithTls(std::vector<std::string> flags) {
    options_.tls_dir = certificates_.dir();
    for (std::string& flag : flags) {
      options_.worker_flags.push_back(std::move(flag));
    }
    auto cluster = ProcessCluster::Start(options_);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }
  // Nothing is left over, and the end is clean.
  void ExpectCleanEnd() {
    EXPECT_EQ(cluster_->WaitPoolsIdle(seconds(10)), absl::OkStatus());
    EXPECT_EQ(cluster_->Drain(), absl::OkStatus());
  }

  const Certificates certificates_;
  ClusterOptions options_;
  std::unique_ptr<ProcessCluster> cluster_;
};

TEST_F(TlsTest, AnswersAsWithoutTls) {
  auto plain = ProcessCluster::Start(options_);
  ASSERT_TRUE(plain.ok()) << plain.status();
  const Answer expected = (*plain)->Generate(Request(70));
  ASSERT_TRUE(expected.status.ok()) << expected.status;
  EXPECT_EQ(expected.served.transport(), "ucx");
  plain->reset();

  StartWithTls({"--transport=grpc"});
  const Answer answer = cluster_->Generate(Request(70));
  ASSERT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.served.transport(), "grpc");
  EXPECT_GT(answer.served.kv_bytes_moved(), 0u);
  EXPECT_EQ(answer.tokens, expected.tokens);
  for (Process* process :
       {&cluster_->router(), &cluster_->prefill(0), &cluster_->decode(0)}) {
    const auto left = process->Metric("baton_tls_certificate_expiry_seconds");
    ASSERT_TRUE(left.ok()) << left.status();
    EXPECT_NEAR(*left, 90 * 86400, 3600);
  }
  ExpectCleanEnd();
}

TEST_F(TlsTest, StrangersAreRefused) {
  const std::string data = FreeAddress();
  options_.decode_flags.push_back("--transfer-listen=" + data);
  options_.prefill_flags.push_back("--transport=grpc");
  StartWithTls({});
  ASSERT_TRUE(cluster_->Generate(Request(40)).status.ok());
  const int files_before = OpenFiles(cluster_->router().pid());

  const Certificates foreign;
  CertificateFiles impostor = foreign.Of(PeerRole::kClient);
  impostor.ca = certificates_.File("ca.crt");
  const CertificateFiles without = {.ca = certificates_.File("ca.crt")};
  const std::string router = cluster_->router().address();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(AskRouter(router, {}).error_code(),
              grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(AskRouter(router, without).error_code(),
              grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(AskRouter(router, impostor).error_code(),
              grpc::StatusCode::UNAVAILABLE);
  }
  const grpc::Status wrong =
      AskRouter(router, certificates_.Of(PeerRole::kDecode));
  EXPECT_EQ(wrong.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(wrong.error_message(),
            "peer: the certificate's role is decode, allowed client");

  // Only routers get a session, only workers a link for KV.
  Process& decode = cluster_->decode(0);
  EXPECT_EQ(
      OpenDecodeSession(decode.address(), certificates_.Of(PeerRole::kClient))
          .error_code(),
      grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(OpenDecodeSession(decode.address(), without).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  for (const PeerRole role : {PeerRole::kRouter, PeerRole::kClient}) {
    const grpc::Status denied = OpenLink(data, certificates_.Of(role));
    EXPECT_EQ(denied.error_code(), grpc::StatusCode::PERMISSION_DENIED)
        << denied.error_message();
  }
  EXPECT_EQ(OpenLink(data, without).error_code(),
            grpc::StatusCode::UNAVAILABLE);

  const auto refused = decode.Metric("baton_tls_peers_refused_total");
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_EQ(*refused, 3);
  EXPECT_THAT(ReadAll(decode.log_file()),
              HasSubstr("audit: refused /baton.v1.KvLink/Link to "
                        "\"CN=router,O=Baton\": role router, allowed prefill "
                        "or decode"));
  EXPECT_GE(*cluster_->router().Metric("baton_tls_handshakes_failed_total"),
            20);

  // Those who belong are served as before, and nobody left anything behind.
  EXPECT_TRUE(cluster_->Generate(Request(40)).status.ok());
  const MonotonicTime give_up = MonotonicNow() + seconds(20);
  while (OpenFiles(cluster_->router().pid()) > files_before &&
         MonotonicNow() < give_up) {
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_LE(OpenFiles(cluster_->router().pid()), files_before);
  ExpectCleanEnd();
}

TEST_F(TlsTest, NewCertificatesNeedNoRestart) {
  StartWithTls({"--transport=grpc"});
  ASSERT_TRUE(cluster_->Generate(Request(40)).status.ok());
  // What the old CA has signed is worth nothing from now on.
  const Certificates old;
  for (const char* name : {"ca.crt", "client.crt", "client.key"}) {
    std::ofstream(old.File(name)) << ReadAll(certificates_.File(name));
  }
  std::remove(certificates_.File("ca.key").c_str());
  certificates_.Renew();

  const std::string router = cluster_->router().address();
  const CertificateFiles client = certificates_.Of(PeerRole::kClient);
  const MonotonicTime give_up = MonotonicNow() + seconds(60);
  while (!AskRouter(router, client).ok() && MonotonicNow() < give_up) {
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_TRUE(AskRouter(router, client).ok());
  // Each process reads them at its own time.
  while (OpenDecodeSession(cluster_->decode(0).address(),
                           certificates_.Of(PeerRole::kRouter))
                 .error_code() == grpc::StatusCode::UNAVAILABLE &&
         MonotonicNow() < give_up) {
    std::this_thread::sleep_for(milliseconds(100));
  }
  CertificateFiles outdated = old.Of(PeerRole::kClient);
  outdated.ca = certificates_.File("ca.crt");
  EXPECT_EQ(AskRouter(router, outdated).error_code(),
            grpc::StatusCode::UNAVAILABLE);

  // Connections between the processes are made anew and hold.
  cluster_->prefill(0).Signal(SIGKILL);
  ASSERT_TRUE(cluster_->prefill(0).WaitExit(seconds(20)).ok());
  ASSERT_EQ(cluster_->RestartPrefill(0), absl::OkStatus());
  ASSERT_EQ(cluster_->WaitWorkersReady(seconds(60)), absl::OkStatus());
  const Answer answer = cluster_->Generate(Request(70));
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.served.transport(), "grpc");
  EXPECT_TRUE(cluster_->router().alive() && cluster_->decode(0).alive());
  ExpectCleanEnd();
}

// What a binary says before it gives up with status 2.
std::string Refusal(const std::string& binary, std::vector<std::string> flags) {
  auto process = Process::Start({.binary = binary,
                                 .flags = std::move(flags),
                                 .name = "refused",
                                 .work_dir = ::testing::TempDir()});
  EXPECT_TRUE(process.ok()) << process.status();
  if (!process.ok()) return "";
  const auto status = (*process)->WaitExit(seconds(30));
  EXPECT_TRUE(status.ok()) << status.status();
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 2) << *status;
  const std::string text = (*process)->LogTail();
  unlink((*process)->log_file().c_str());
  return text;
}

TEST_F(TlsTest, BadConfigurationIsRefusedAtTheStart) {
  const std::string model = "--model=" + options_.model;
  for (const char* check : {"--check-config=false", "--check-config"}) {
    for (const char* binary :
         {"baton-router", "baton-prefill-worker", "baton-decode-worker"}) {
      std::vector<std::string> flags = {model, check};
      const bool router = std::string(binary) == "baton-router";
      if (router) flags.push_back("--decode=127.0.0.1:1");
      const auto with = [&](const std::string& flag) {
        std::vector<std::string> all = flags;
        all.push_back(flag);
        return Refusal(binary, all);
      };
      EXPECT_THAT(with("--listen=0.0.0.0:0"),
                  HasSubstr("listen: 0.0.0.0:0: refused without --insecure"));
      EXPECT_THAT(with("--tls-dir=/nowhere"),
                  HasSubstr("tls-ca: /nowhere/ca.crt: No such file"));
    }
    const std::string key = certificates_.File("decode.key");
    chmod(key.c_str(), 0644);
    const std::string dir = "--tls-dir=" + certificates_.dir();
    EXPECT_THAT(Refusal("baton-decode-worker", {model, check, dir}),
                HasSubstr(key + ": a private key that everyone may read"));
    chmod(key.c_str(), 0600);
    EXPECT_THAT(
        Refusal("baton-decode-worker",
                {model, check, "--transport=ucx", "--listen=0.0.0.0:0", dir}),
        HasSubstr("ucx refused beyond loopback without --trusted-network: no "
                  "memory protection"));
  }
}

}  // namespace
}  // namespace baton::testing
