#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "common/base/host_port.h"
#include "common/base/ready_file.h"
#include "common/base/shutdown_signals.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/config/config_parser.h"
#include "common/config/config_values.h"
#include "common/rpc/tls_credentials.h"
#include "common/rpc/tls_options.h"
#include "router/client/cli/api_token_source.h"
#include "router/client/cli/cluster_table.h"
#include "router/client/cli/command.h"
#include "router/client/cli/local_cluster.h"
#include "router/client/cli/terminal.h"

namespace baton::cli {
namespace {

constexpr char kModelFile[] = "SmolLM2-135M-Instruct.Q4_1.gguf";
constexpr Duration kWatchInterval = std::chrono::milliseconds(100);

struct UpConfig {
  std::string model;
  std::string served_model_name;
  std::string listen = kDefaultRouter;
  bool insecure = false;
  TlsOptions tls;
  std::string api_tokens;
  std::string api_token_file;
  std::string api_token;
  int prefill = 1;
  int decode = 1;
  std::string disaggregation = "auto";
  std::string speculation;
  std::string draft_model;
  std::optional<Duration> tpot_target;
  std::string transport = "auto";
  std::string policy;
  std::string isa;
  std::string weights;
  std::string kv_type;
  uint64_t kv_pool = 512 << 20;
  uint32_t max_context = 0;
  std::optional<int> threads;
  std::optional<int> step_tokens;
  Duration drain_timeout = std::chrono::seconds(30);
  std::string log_level = "info";
  std::string log_dir;
  bool verbose = false;
  std::string ready_file;
};

void AddFlags(ConfigParser* parser, UpConfig* config) {
  parser->AddString("model", &config->model,
                    StrCat("GGUF file to serve; default: ", kModelFile,
                           " in the folder $BATON_MODEL_DIR, or where "
                           "deploy/fetch-model.sh puts it"));
  parser->AddString("served-model-name", &config->served_model_name,
                    "what clients call it");
  parser->AddHostPort("listen", &config->listen, "where clients connect");
  parser->AddSwitch("insecure", &config->insecure,
                    "let other machines connect, in plain text");
  parser->AddString("tls-dir", &config->tls.dir,
                    "TLS everywhere, with the certificates of this folder "
                    "(deploy/make-certs.sh makes them)");
  parser->AddChoice("tls-client-auth", &config->tls.client_auth,
                    {"require", "none"},
                    "whether clients must show a certificate");
  parser->AddString("api-tokens", &config->api_tokens,
                    "clients need a token of this file (see baton token)");
  parser->AddString("api-token-file", &config->api_token_file,
                    "with --api-tokens: the token this command itself uses; "
                    "default: the variable BATON_API_TOKEN");
  parser->AddInteger("prefill", &config->prefill, 0, 64, "prefill workers");
  parser->AddInteger("decode", &config->decode, 1, 64, "decode workers");
  parser->AddChoice("disaggregation", &config->disaggregation,
                    {"never", "always", "auto"},
                    "when decode workers leave prompts to prefill workers");
  parser->AddChoice("speculation", &config->speculation,
                    {"off", "ngram", "suffix", "draft"},
                    "where guesses of the next tokens come from");
  parser->AddString("draft-model", &config->draft_model,
                    "GGUF file of a smaller model that guesses");
  parser->AddDuration("tpot-target", &config->tpot_target,
                      "answers join a batch as long as its steps are predicted "
                      "to end within this");
  parser->AddString("transport", &config->transport,
                    "how KV blocks travel between workers");
  parser->AddString("policy", &config->policy, "how the router picks workers");
  parser->AddString("isa", &config->isa, "instruction set of the kernels");
  parser->AddChoice("weights", &config->weights, {"file", "int8"},
                    "weights in memory");
  parser->AddChoice("kv-type", &config->kv_type, {"f16", "f32", "i8"},
                    "element type of KV blocks");
  parser->AddByteSize("kv-pool", &config->kv_pool,
                      "memory for KV blocks of each worker");
  parser->AddInteger("max-context", &config->max_context, 0, 1 << 24,
                     "most tokens of prompt and answer; 0 = the model's "
                     "context");
  parser->AddInteger(
      "threads", &config->threads, 1, 1024,
      "compute threads of each worker; default: an even share of the "
      "CPUs");
  parser->AddInteger("step-tokens", &config->step_tokens, 1, 1 << 20,
                     "prompt tokens per step");
  parser->AddDuration("drain-timeout", &config->drain_timeout,
                      "time running requests get on Ctrl-C");
  parser->AddChoice("log-level", &config->log_level,
                    {"debug", "info", "warn", "error"}, "of every process");
  parser->AddString("log-dir", &config->log_dir,
                    "keep the logs of all processes here");
  parser->AddSwitch("verbose", &config->verbose,
                    "show the logs of all processes");
  parser->SetShortName("verbose", 'v');
  parser->AddString("ready-file", &config->ready_file,
                    "write the router's addresses here when all is ready");
}

// Where deploy/fetch-model.sh and tests/run.sh put the small model.
absl::Status FindModel(std::string* model) {
  std::error_code ignored;
  if (!model->empty()) {
    if (std::filesystem::is_regular_file(*model, ignored)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(StrCat("model: no file ", *model));
  }
  const char* folder = std::getenv("BATON_MODEL_DIR");
  const std::string path =
      StrCat(folder != nullptr ? folder : BinaryFolder() + "/../models", "/",
             kModelFile);
  if (std::filesystem::is_regular_file(path, ignored)) {
    *model = std::filesystem::weakly_canonical(path, ignored).string();
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "model: required (a GGUF file; deploy/fetch-model.sh downloads a small "
      "one)");
}

// Finds the token with which this command asks about the workers.
absl::Status FindToken(UpConfig* config) {
  if (config->api_tokens.empty()) return absl::OkStatus();
  BATON_ASSIGN_OR_RETURN(config->api_token,
                         ReadApiToken(config->api_token_file));
  if (!config->api_token.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "api-token-file: required with --api-tokens, or set BATON_API_TOKEN");
}

// The variables that configure this command mean something else to the
// processes it starts.
void ClearVariables() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("BATON_")) {
      names.emplace_back(text.substr(0, text.find('=')));
    }
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

void AddUnlessEmpty(std::vector<std::string>* flags, std::string_view name,
                    const std::string& value) {
  if (!value.empty()) flags->push_back(StrCat("--", name, "=", value));
}

void Append(std::vector<std::string>* flags,
            const std::vector<std::string>& more) {
  flags->insert(flags->end(), more.begin(), more.end());
}

// How this process asks the router whether all is ready.
absl::StatusOr<ChannelOptions> OwnChannel(const TlsOptions& tls) {
  ChannelOptions channel;
  const CertificateFiles files = tls.FilesFor(PeerRole::kClient);
  if (files.ca.empty()) return channel;
  BATON_ASSIGN_OR_RETURN(channel.tls,
                         TlsCredentials::Load(files, std::nullopt));
  channel.peer_roles = {PeerRole::kRouter};
  return channel;
}

// Workers that compete for a CPU wait for each other at every barrier of their
// thread pools, so together they get no more threads than there are CPUs.
int ThreadShare(int workers) {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) return 1;
  return std::max(1, CPU_COUNT(&cpus) / workers);
}

LocalClusterOptions ToOptions(const UpConfig& config) {
  std::vector<std::string> shared{
      StrCat("--model=", config.model),
      StrCat("--log-level=", config.log_level),
      StrCat("--drain-timeout=", FormatDuration(config.drain_timeout))};

  std::vector<std::string> worker = shared;
  worker.push_back(StrCat("--kv-pool=", FormatByteSize(config.kv_pool)));
  if (config.max_context > 0) {
    worker.push_back(StrCat("--max-context=", config.max_context));
  }
  AddUnlessEmpty(&worker, "transport", config.transport);
  AddUnlessEmpty(&worker, "isa", config.isa);
  AddUnlessEmpty(&worker, "weights", config.weights);
  AddUnlessEmpty(&worker, "kv-type", config.kv_type);
  worker.push_back(StrCat("--threads=", config.threads.value_or(ThreadShare(
                                            config.prefill + config.decode))));
  if (config.step_tokens) {
    worker.push_back(StrCat("--step-tokens=", *config.step_tokens));
  }

  LocalClusterOptions options;
  options.binary_folder = BinaryFolder();
  options.prefill_workers = config.prefill;
  options.decode_workers = config.decode;
  options.router_flags = shared;
  options.router_flags.push_back(StrCat("--listen=", config.listen));
  if (config.insecure) options.router_flags.push_back("--insecure");
  AddUnlessEmpty(&options.router_flags, "api-tokens", config.api_tokens);
  options.api_token = config.api_token;
  AddUnlessEmpty(&options.router_flags, "policy", config.policy);
  AddUnlessEmpty(&options.router_flags, "served-model-name",
                 config.served_model_name);
  options.prefill_flags = worker;
  options.decode_flags = worker;
  Append(&options.router_flags, config.tls.FlagsFor(PeerRole::kRouter));
  Append(&options.prefill_flags, config.tls.FlagsFor(PeerRole::kPrefill));
  Append(&options.decode_flags, config.tls.FlagsFor(PeerRole::kDecode));
  options.decode_flags.push_back(
      StrCat("--disaggregation=", config.disaggregation));
  AddUnlessEmpty(&options.decode_flags, "speculation", config.speculation);
  AddUnlessEmpty(&options.decode_flags, "draft-model", config.draft_model);
  if (config.tpot_target) {
    options.decode_flags.push_back(
        StrCat("--tpot-target=", FormatDuration(*config.tpot_target)));
  }
  options.log_folder = config.log_dir;
  options.logs_to_stderr = config.verbose;
  options.drain_timeout = config.drain_timeout;
  return options;
}

void PrintReady(const LocalCluster& cluster, const std::string& tls_dir) {
  const std::string& address = cluster.router_address();
  const std::string flag =
      StrCat(address == kDefaultRouter ? "" : " --router " + address,
             tls_dir.empty() ? "" : " --tls-dir " + tls_dir);
  std::printf("%s\n", FormatCluster(cluster.info(), address).c_str());
  const std::string baton = ProgramToType();
  std::printf("Talk to it:     %s chat%s\n", baton.c_str(), flag.c_str());
  std::printf("Ask once:       %s generate%s \"What is a relay race?\"\n",
              baton.c_str(), flag.c_str());
  std::printf("Measure it:     %s bench%s\n", baton.c_str(), flag.c_str());
  std::printf("Metrics:        http://%s/metrics\n",
              cluster.router_admin().c_str());
  std::printf("Stop:           Ctrl-C (drains; twice ends at once)\n");
  std::fflush(stdout);
}

absl::Status CheckListen(const std::string& listen) {
  BATON_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(listen));
  return ListenError(address);
}

// Returns when the user wants to stop or the router has ended.
void Watch(LocalCluster* cluster, const std::atomic<int>& interrupts) {
  while (interrupts == 0) {
    for (const std::string& message : cluster->NewDeaths()) {
      std::fprintf(stderr, "baton: %s\n", message.c_str());
    }
    if (!cluster->RouterRunning()) return;
    std::this_thread::sleep_for(kWatchInterval);
  }
}

}  // namespace

int RunUp(int argc, const char* const* argv) {
  UpConfig config;
  ConfigParser parser("baton up",
                      "Starts a router and workers on this machine and drains "
                      "them on Ctrl-C.");
  AddFlags(&parser, &config);
  parser.AddCheck([&] { return FindModel(&config.model); });
  parser.AddCheck({"api-tokens", "api-token-file"},
                  [&] { return FindToken(&config); });
  absl::StatusOr<ChannelOptions> channel;
  parser.AddCheck([&] {
    channel = OwnChannel(config.tls);
    return channel.status();
  });
  parser.AddCheck([&] {
    return CheckPlainText("listen", config.listen, !config.tls.dir.empty(),
                          config.insecure);
  });
  parser.AddCheck({"speculation", "draft-model"}, [&]() -> absl::Status {
    if ((config.speculation == "draft") == !config.draft_model.empty()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "draft-model: wanted with --speculation=draft, and only with that");
  });
  parser.ParseOrExit(argc, argv);
  ClearVariables();
  // Before the workers have read the model in vain.
  if (absl::Status free = CheckListen(config.listen); !free.ok()) {
    std::fprintf(stderr, "baton: listen: %s\n",
                 std::string(free.message()).c_str());
    return 1;
  }

  std::atomic<int> interrupts = 0;
  ShutdownSignals signals([&](int) { ++interrupts; });
  ProgressLine progress(stderr);
  std::atomic<int> interrupts_allowed = 0;
  LocalClusterOptions options = ToOptions(config);
  options.channel = *std::move(channel);
  options.stop_now = [&] { return interrupts > interrupts_allowed; };
  options.progress = [&](const std::string& text) {
    progress.Show(text, MonotonicNow());
  };
  LocalCluster cluster(std::move(options));
  const absl::Status started = cluster.Start();
  progress.Clear();
  if (!started.ok()) {
    if (absl::IsCancelled(started)) return 130;
    std::fprintf(stderr, "baton: %s\n", std::string(started.message()).c_str());
    return 1;
  }
  PrintReady(cluster, config.tls.dir);
  if (!config.ready_file.empty()) {
    const absl::Status written = WriteReadyFile(
        config.ready_file, {{"address", cluster.router_address()},
                            {"admin", cluster.router_admin()}});
    if (!written.ok()) {
      std::fprintf(stderr, "baton: ready-file: %s\n",
                   std::string(written.message()).c_str());
      return 1;
    }
  }
  Watch(&cluster, interrupts);
  const bool asked = interrupts > 0;
  interrupts_allowed = asked ? 1 : 0;
  const bool clean = cluster.Drain();
  progress.Clear();
  if (!config.ready_file.empty()) {
    std::error_code ignored;
    std::filesystem::remove(config.ready_file, ignored);
  }
  return asked && clean ? 0 : 1;
}

}  // namespace baton::cli
