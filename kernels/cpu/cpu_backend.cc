#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/api/exact_math.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/feed_forward.h"
#include "kernels/cpu/float_environment.h"
#include "kernels/cpu/input_rows.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/loop_history.h"
#include "kernels/cpu/packed_panels.h"
#include "kernels/cpu/panel_packer.h"
#include "kernels/cpu/qkv.h"
#include "kernels/cpu/rope.h"
#include "kernels/cpu/self_check.h"
#include "kernels/cpu/table_backend.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/cpu/weight_arena.h"

namespace baton::kernels {
namespace {

using cpu::FloatEnvironment;
using cpu::KernelTable;
using cpu::PackedPanels;

const KernelTable& TableOf(Isa isa) {
  switch (isa) {
    case Isa::kAmx:
      return cpu::AmxKernels();
    case Isa::kAvx512:
      return cpu::Avx512Kernels();
    case Isa::kAvxVnni:
      return cpu::AvxVnniKernels();
    case Isa::kAvx2:
      return cpu::Avx2Kernels();
    default:
      return cpu::ScalarKernels();
  }
}

bool AmxWorks() {
  static const bool works = cpu::MultipliesAsScalar(cpu::AmxKernels());
  return works;
}

Isa BestIsa(WarnFunction warn) {
  const std::string_view obstacle = AmxObstacle();
  if (!obstacle.empty()) {
    warn(absl::StrCat("AMX is not used: ", std::string(obstacle)));
  }
  std::vector<cpu::IsaCandidate> candidates;
  for (const Isa isa : kIsas) {
    if (!IsSupported(isa)) continue;
    candidates.push_back({isa, &TableOf(isa), isa == Isa::kAmx});
  }
  return cpu::SettleIsa(candidates, warn);
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(std::string_view isa_name, const KernelTable& table, int threads)
      : name_(absl::StrCat("cpu-", std::string(isa_name))),
        table_(table),
        pool_(threads, cpu::SteadyNanoseconds),
        input_(&table_, &pool_),
        history_(threads),
        linear_(&table_, &pool_, &input_, &history_),
        qkv_(&table_, &pool_, &input_, &history_),
        feed_forward_(&table_, &pool_, &input_, &history_),
        attention_(&table_, &pool_) {}

  std::string_view name() const override { return name_; }
  int threads() const override { return pool_.threads(); }

  absl::StatusOr<std::unique_ptr<MatrixPacker>> StartPacking(
      const MatrixShape& shape) override {
    if (absl::Status status = ValidateShape(shape); !status.ok()) return status;
    auto memory = arena_.Allocate(PackedPanels::StorageBytes(shape));
    if (!memory.ok()) return memory.status();
    return std::make_unique<cpu::PanelPacker>(
        shape, std::make_unique<PackedPanels>(shape, *std::move(memory)),
        &pool_);
  }

  void Embed(const PackedMatrix& table, absl::Span<const uint32_t> ids,
             float* out) override {
    const FloatEnvironment environment;
    const PackedPanels& panels = PackedPanels::Of(table);
    ForRows(static_cast<int>(ids.size()), panels.cols() * 4,
            [&](int r) { panels.Dequantize(ids[r], out + r * panels.cols()); });
  }

  void RmsNorm(const float* x, const float* weight, int n, int width, float eps,
               float* out) override {
    const FloatEnvironment environment;
    ForRows(n, width, [&](int64_t r) {
      table_.rms_norm_row(x + r * width, weight, width, eps, out + r * width);
    });
  }

  void Linear(const float* x, int n,
              absl::Span<const LinearTarget> targets) override {
    const FloatEnvironment environment;
    linear_.Run(x, n, targets);
  }

  void RopeInterleaved(float* x, int n, int heads, int head_dim,
                       int rotary_dims, const float* cos, const float* sin,
                       absl::Span<const int32_t> positions) override {
    const FloatEnvironment environment;
    const int pairs = rotary_dims / 2;
    const int64_t width = int64_t{heads} * head_dim;
    ForRows(n, width, [&](int64_t r) {
      const int64_t angles = int64_t{positions[r]} * pairs;
      cpu::RotateHeads(x + r * width, heads, head_dim, pairs, cos + angles,
                       sin + angles);
    });
  }

  void StoreKv(const KvLayout& layout, int layer, const float* k,
               const float* v,
               absl::Span<const SequenceRows> sequences) override {
    const FloatEnvironment environment;
    attention_.Store(layout, layer, k, v, sequences);
  }

  void Attention(const KvLayout& layout, int layer, const float* q, int heads,
                 absl::Span<const SequenceRows> sequences,
                 float* out) override {
    const FloatEnvironment environment;
    attention_.Attend(layout, layer, q, heads, sequences, out);
  }

  void SiluMul(const float* gate, const float* up, int n, int width,
               float* out) override {
    const FloatEnvironment environment;
    ForRows(n, int64_t{width} * 4, [&](int64_t r) {
      table_.silu_mul(gate + r * width, up + r * width, width, out + r * width);
    });
  }

  void FiniteRows(const float* x, int n, int width, bool* finite) override {
    const FloatEnvironment environment;
    for (int64_t r = 0; r < n; ++r) {
      finite[r] = table_.finite_row(x + r * width, width);
    }
  }

  float LogSumExp(const float* x, int n) override {
    const FloatEnvironment environment;
    const cpu::MaximumAndSum result = table_.max_and_exp_sum(x, n);
    return result.maximum + Log(result.sum);
  }

  void ProjectQkv(const float* x, int n, const QkvWeights& weights,
                  const RotaryAngles& angles, const KvLayout& layout, int layer,
                  absl::Span<const SequenceRows> sequences, float* query,
                  bool* finite) override {
    const FloatEnvironment environment;
    qkv_.Run(x, n, sequences,
             {.weights = &weights,
              .angles = &angles,
              .layout = &layout,
              .layer = layer,
              .query = query,
              .finite = finite});
  }

  void FeedForward(const FeedForwardWeights& weights, int n,
                   float* x) override {
    const FloatEnvironment environment;
    feed_forward_.Run(weights, n, x);
  }

 private:
  // Calls body(row) for n rows of `cost` simple steps each, on several threads
  // when that is worth waking them.
  template <typename Body>
  void ForRows(int n, int64_t cost, Body body) {
    constexpr int64_t kItemCost = 16384;
    const int rows = static_cast<int>(std::max<int64_t>(1, kItemCost / cost));
    pool_.Run((n + rows - 1) / rows, [&](int item, int) {
      const int end = std::min(n, (item + 1) * rows);
      for (int r = item * rows; r < end; ++r) body(r);
    });
  }

  const std::string name_;
  const KernelTable& table_;
  cpu::ThreadPool pool_;
  cpu::WeightArena arena_;
  cpu::InputRows input_;
  cpu::LoopHistory history_;
  cpu::LinearRunner linear_;
  cpu::QkvRunner qkv_;
  cpu::FeedForwardRunner feed_forward_;
  cpu::AttentionRunner attention_;
};

}  // namespace

std::unique_ptr<Backend> MakeTableBackend(std::string_view isa_name,
                                          const KernelTable& table,
                                          int threads) {
  return std::make_unique<CpuBackend>(isa_name, table, threads);
}

absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(
    const CpuOptions& options) {
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(absl::StrCat(
        "threads: given ", options.threads, ", allowed 1..", kMaxThreads));
  }
  const Isa isa =
      options.isa == Isa::kAuto ? BestIsa(options.warn) : options.isa;
  if (!IsSupported(isa)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this machine lacks the instruction set '", std::string(IsaName(isa)),
        "' (scalar and avx2 need AVX2, FMA, F16C and BMI2; avxvnni also "
        "AVX-VNNI; "
        "avx512 F, BW, DQ, VL and VNNI; amx these, AMX-TILE and AMX-INT8, "
        "allowed by the kernel); use 'auto'"));
  }
  if (options.isa == Isa::kAmx && !AmxWorks()) {
    return absl::InternalError(
        "instruction set 'amx': this machine's results differ from scalar "
        "code; use 'auto'");
  }
  return MakeTableBackend(IsaName(isa), TableOf(isa), options.threads);
}

void WarnOnStandardError(std::string_view message) {
  std::fprintf(stderr, "baton: warning: %.*s\n",
               static_cast<int>(message.size()), message.data());
}

size_t CpuPackedBytes(const MatrixShape& shape) {
  return cpu::PackedPanels::StorageBytes(shape);
}

}  // namespace baton::kernels
