#include "router/router_config.h"

#include <algorithm>
#include <limits>

#include "common/base/strings.h"
#include "common/config/config_values.h"

namespace baton::router {
namespace {

constexpr int64_t kMaxQueueRequests = 1'000'000;
constexpr int64_t kMaxQueueTokens = 1'000'000'000'000;
constexpr int64_t kMaxQueueBytes = int64_t{64} << 30;
constexpr Duration kLongest = std::chrono::hours(24);
constexpr Duration kShortest = std::chrono::milliseconds(10);

absl::Status CheckWorkers(const RouterConfig& config) {
  if (config.decode.empty()) {
    return absl::InvalidArgumentError(
        "decode: at least one worker address is required");
  }
  for (const std::string& address : config.prefill) {
    if (std::find(config.decode.begin(), config.decode.end(), address) !=
        config.decode.end()) {
      return absl::InvalidArgumentError(
          StrCat("decode: ", address, " is also given as prefill worker"));
    }
  }
  return absl::OkStatus();
}

// Reads the file, so that --check-config finds what is wrong with it.
absl::Status CheckApiTokens(const RouterConfig& config) {
  if (config.api_tokens.empty()) return absl::OkStatus();
  const absl::Status opened = ApiTokenFile::Open(config.api_tokens).status();
  if (opened.ok()) return opened;
  return absl::InvalidArgumentError(
      StrCat("api-tokens: ", ToStd(opened.message())));
}

}  // namespace

void RouterConfig::Register(ConfigParser* parser) {
  parser->AddHostPort("listen", &listen, "where clients connect (gRPC)");
  parser->AddHostPort("admin", &admin, "metrics and probes (HTTP)");
  parser->AddSwitch("insecure", &insecure,
                    "allow plain text beyond the loopback device where there "
                    "is no TLS");
  tls.Register(parser, PeerRole::kRouter);
  parser->AddSwitch("reflection", &reflection, "serve gRPC reflection");
  parser->AddString("model", &model,
                    "GGUF file; only tokenizer and chat template are used");
  parser->AddString("served-model-name", &served_model_name,
                    "what clients call the model; default: as in the file");
  parser->AddHostPorts("prefill", &prefill, "prefill workers");
  parser->AddHostPorts("decode", &decode, "decode workers");
  parser->AddString("router-id", &router_id, "name of this router in logs");
  parser->AddChoice("policy", &policy, {"least_loaded", "round_robin"},
                    "how workers are chosen");
  parser->AddChoice("special-tokens", &special_tokens, {"hf", "safe"},
                    "special-token strings in prompts: as Hugging Face does, "
                    "or as plain text");
  parser->AddInteger("default-max-tokens", &default_max_tokens, 1,
                     std::numeric_limits<int32_t>::max(),
                     "length of an answer that says nothing about it");
  parser->AddDuration("max-deadline", &max_deadline, kShortest, kLongest,
                      "longest time of a request, and of those without one");
  parser->AddString("api-tokens", &api_tokens,
                    "file of API tokens, a line TENANT SHA256 each (baton "
                    "token makes them); read again when it changes");
  parser->AddInteger("max-requests-per-client", &max_requests_per_client, 1,
                     kMaxQueueRequests,
                     "open requests of one tenant, or without API tokens of "
                     "one machine");
  parser->AddByteSize("max-unread-bytes", &max_unread_bytes, 64 << 10, 1 << 30,
                      "of an answer that wait for its client to read them");
  parser->AddByteSize("max-held-back-bytes", &max_held_back_bytes, 64 << 10,
                      kMaxQueueBytes,
                      "for answers of best_of requests, which are told when "
                      "all have ended");
  parser->AddDuration("slow-client-timeout", &slow_client_timeout, kShortest,
                      kLongest,
                      "a client that reads nothing of an answer that waits for "
                      "it is cut off");
  parser->AddInteger("max-queue-requests", &max_queue_requests, 1,
                     kMaxQueueRequests, "requests that may wait");
  parser->AddInteger("max-queue-tokens", &max_queue_tokens, 1, kMaxQueueTokens,
                     "prompt tokens that may wait");
  parser->AddByteSize("max-queue-bytes", &max_queue_bytes, 1 << 20,
                      kMaxQueueBytes, "of the requests that may wait");
  parser->AddDuration("max-queue-age", &max_queue_age, kShortest, kLongest,
                      "longest time in the queue");
  parser->AddInteger("max-replays", &max_replays, 0, 100,
                     "attempts after the first, per answer");
  parser->AddInteger("replay-percent", &replay_percent, 0, 100,
                     "replays that the whole cluster may make, per accepted "
                     "request");
  parser->AddInteger("replays-per-second", &replays_per_second, 0, 1'000'000,
                     "and besides, however few requests there are");
  parser->AddInteger("replay-burst", &replay_burst, 0, 1'000'000,
                     "replays that may be saved up for the loss of a worker");
  parser->AddDuration("slow-start", &slow_start, Duration::zero(), kLongest,
                      "how long a worker that joins or comes back gets work "
                      "slowly");
  parser->AddDuration("stall-timeout", &stall_timeout, kShortest, kLongest,
                      "an attempt without progress is replayed");
  parser->AddDuration("silence-timeout", &silence_timeout, kShortest, kLongest,
                      "a session without events is closed");
  parser->AddDuration("progress-timeout", &progress_timeout, kShortest,
                      kLongest,
                      "not ready when requests wait and no worker made a step "
                      "for this long");
  parser->AddDuration("startup-grace", &startup_grace, Duration::zero(),
                      kLongest,
                      "how long workers never seen before are waited for");
  parser->AddDuration(
      "unavailable-grace", &unavailable_grace,
      "how long requests wait when all decode workers are gone");
  parser->AddDuration("resolve-interval", &resolve_interval, kShortest,
                      kLongest, "how often worker names are resolved");
  parser->AddDuration("drain-timeout", &drain_timeout, Duration::zero(),
                      kLongest, "time for running requests after SIGTERM");
  parser->AddDuration("termination-grace", &termination_grace,
                      "what the supervisor waits from SIGTERM to SIGKILL; "
                      "0 = unknown");
  parser->AddString("ready-file", &ready_file,
                    "JSON file written when the router serves");
  parser->AddSwitch("core-dumps", &core_dumps,
                    "let a crash write memory to disk, with prompts");
  parser->AddChoice("log-level", &log_level, {"debug", "info", "warn", "error"},
                    "least important lines to log");
  parser->Require("model");
  parser->AddCheck({"api-tokens"}, [this, parser] {
    if (parser->Given("api-tokens") && api_tokens.empty()) {
      return absl::InvalidArgumentError("api-tokens: expected a file");
    }
    return CheckApiTokens(*this);
  });
  parser->AddCheck({"prefill", "decode"},
                   [this] { return CheckWorkers(*this); });
  parser->AddCheck({"listen", "insecure"}, [this] {
    return CheckPlainText("listen", listen, tls.enabled(), insecure);
  });
  parser->AddCheck({"admin", "insecure"}, [this] {
    return CheckPlainText("admin", admin, /*tls=*/false, insecure);
  });
}

RouterOptions RouterConfig::CoreOptions(uint32_t vocabulary_size,
                                        uint64_t jitter_seed) const {
  RouterOptions options;
  options.vocabulary_size = vocabulary_size;
  options.admission.max_requests = max_queue_requests;
  options.admission.max_tokens = max_queue_tokens;
  options.admission.max_bytes = max_queue_bytes;
  options.admission.max_age = max_queue_age;
  options.max_replays = max_replays;
  options.retry = {replay_percent / 100.0,
                   static_cast<double>(replays_per_second),
                   static_cast<double>(replay_burst)};
  options.slow_start = slow_start;
  options.jitter_seed = jitter_seed;
  options.stall_timeout = stall_timeout;
  options.silence_timeout = silence_timeout;
  options.progress_timeout = progress_timeout;
  options.startup_grace = startup_grace;
  options.unavailable_grace = unavailable_grace;
  options.prefill_configured = !prefill.empty();
  options.decode_configured = !decode.empty();
  return options;
}

std::vector<PeerRole> RouterConfig::AdmittedClients() const {
  if (tls.client_auth == "none") return {};
  return {PeerRole::kClient};
}

MembershipOptions RouterConfig::Members(RouterEpoch epoch) const {
  MembershipOptions options;
  options.prefill = prefill;
  options.decode = decode;
  options.resolve_interval = resolve_interval;
  options.link.router_epoch = epoch;
  options.link.router_id = router_id;
  return options;
}

}  // namespace baton::router
