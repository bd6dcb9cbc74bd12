// How fast KV blocks move between two processes on this machine, next to what
// the machine can do: memcpy, raw TCP over loopback, raw UCX active messages,
// all in the same run. Arguments: "shm", "tcp", "grpc", "grpc_tls" (default:
// all), and message sizes in bytes, multiples of 64 (default: a table of them).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/bench/transfer_bench_baton.h"
#include "tests/bench/transfer_bench_peer.h"
#include "tests/bench/transfer_bench_probes.h"
#include "tests/support/certificates.h"

namespace baton::transfer {
namespace {

struct Choice {
  std::vector<std::string> modes;
  std::vector<size_t> sizes;
};

const std::vector<size_t> kSizes = {4 << 10,   16 << 10, 64 << 10,
                                    256 << 10, 1 << 20,  4 << 20,
                                    8 << 20,   16 << 20, 64 << 20};

const std::vector<std::string> kModes = {"shm", "tcp", "grpc", "grpc_tls"};

double Quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(q * (values.size() - 1))];
}

void PrintPhase(const char* name, const std::vector<double>& times) {
  std::printf("  %-34s p50 %7.3f ms   p90 %7.3f ms   max %7.3f ms\n", name,
              Quantile(times, 0.5), Quantile(times, 0.9), Quantile(times, 1.0));
}

void PrintTable(const std::string& mode, const std::vector<size_t>& sizes,
                Rates memcpy_rates, Rates tcp, Rates ucx, Rates baton) {
  const bool shm = mode == "shm";
  std::printf("\n%s, GB/s%34s\n", mode.c_str(), "");
  std::printf("%10s %9s %9s %9s %9s %11s\n", "bytes", "memcpy", "raw TCP",
              "raw UCX", "Baton", shm ? "of raw UCX" : "of raw TCP");
  for (const size_t size : sizes) {
    const double base = shm ? ucx[size] : tcp[size];
    std::printf("%10zu %9.2f %9.2f %9.2f %9.2f %10.0f%%\n", size,
                memcpy_rates[size] / 1e9, tcp[size] / 1e9, ucx[size] / 1e9,
                baton[size] / 1e9, 100 * baton[size] / base);
  }
}

void Run(const std::string& mode, const std::vector<size_t>& sizes,
         const BenchPeer& peer, bool receiver) {
  const bool grpc = mode.starts_with("grpc");
  setenv("UCX_TLS", mode == "shm" ? "self,sysv,posix,cma" : "self,tcp", 1);
  Rates memcpy_rates;
  if (receiver) memcpy_rates = MemcpyProbe(sizes);
  peer.Meet();
  const Rates tcp = TcpProbe(peer, receiver, sizes);
  const Rates ucx = grpc ? Rates() : UcxProbe(peer, receiver, sizes);
  const MakeTransport make = TransportMaker(mode);
  const Rates baton = BatonRates(make, peer, receiver, sizes);
  const HandOverTimes times = HandOver(make, peer, receiver, 20);
  if (!receiver) return;
  PrintTable(mode, sizes, memcpy_rates, tcp, ucx, baton);
  std::printf("hand-over of 512 tokens, 32 blocks of 368640 bytes, %s\n",
              mode.c_str());
  PrintPhase("ticket issued to first block queued", times.reserve_to_begin);
  PrintPhase("first to last block queued", times.stream);
  PrintPhase("exposed: last queued to verified", times.exposed);
  PrintPhase("verified to acknowledged", times.acknowledge);
}

bool Parse(int argc, char** argv, Choice* choice) {
  for (const std::string argument : std::vector(argv + 1, argv + argc)) {
    char* end = nullptr;
    const size_t size = std::strtoul(argument.c_str(), &end, 10);
    if (std::ranges::find(kModes, argument) != kModes.end()) {
      choice->modes.push_back(argument);
    } else if (*end == '\0' && size > 0 && size % 64 == 0 &&
               size <= size_t{1} << 30) {
      choice->sizes.push_back(size);
    } else {
      std::fprintf(stderr,
                   "transfer_bench: got '%s', allowed shm, tcp, grpc, "
                   "grpc_tls, or bytes in "
                   "multiples of 64\n",
                   argument.c_str());
      return false;
    }
  }
  if (choice->modes.empty()) choice->modes = kModes;
  if (choice->sizes.empty()) choice->sizes = kSizes;
  return true;
}

bool RunMode(const std::string& mode, const std::vector<size_t>& sizes) {
  if (mode == "grpc_tls") {
    static const testing::Certificates certificates;
    setenv(kCertificates, certificates.dir().c_str(), 1);
  }
  return RunPair([&](const BenchPeer& peer) { Run(mode, sizes, peer, true); },
                 [&](const BenchPeer& peer) { Run(mode, sizes, peer, false); });
}

}  // namespace
}  // namespace baton::transfer

int main(int argc, char** argv) {
  baton::transfer::Choice choice;
  if (!baton::transfer::Parse(argc, argv, &choice)) return 2;
  for (const std::string& mode : choice.modes) {
    if (!baton::transfer::RunMode(mode, choice.sizes)) return 1;
  }
  return 0;
}
