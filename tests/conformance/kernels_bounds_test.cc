// Linear kernels read nothing behind their inputs, and write nothing behind
// their outputs: all end where a page begins that may not be touched. Tiles
// prefetch past the end of the weights, which is allowed to miss.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "kernels/api/block_formats.h"
#include "kernels/cpu/packed_panels.h"
#include "tests/conformance/emulated_amx.h"
#include "tests/conformance/kernels_conformance.h"

namespace baton::kernels {
namespace {

using cpu::ActivationGroup;
using cpu::KernelTable;

// A copy of `count` elements that ends at a page without access.
template <typename T>
class Guarded {
 public:
  Guarded(const T* from, size_t count) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = count * sizeof(T);
    const size_t pages = (bytes + page - 1) / page * page;
    mapped_ = pages + page;
    base_ =
        static_cast<std::byte*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) std::abort();
    mprotect(base_ + pages, page, PROT_NONE);
    data_ = reinterpret_cast<T*>(base_ + pages - bytes);
    std::memcpy(data_, from, bytes);
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  T* data() const { return data_; }

 private:
  size_t mapped_;
  std::byte* base_;
  T* data_;
};

std::vector<const KernelTable*> Tables() {
  std::vector<const KernelTable*> tables = {&cpu::ScalarKernels(),
                                            &EmulatedAmxScalarKernels()};
  const auto add = [&](Isa isa, const KernelTable& table) {
    if (IsSupported(isa)) tables.push_back(&table);
  };
  add(Isa::kAvx2, cpu::Avx2Kernels());
  add(Isa::kAvxVnni, cpu::AvxVnniKernels());
  add(Isa::kAvx512, cpu::Avx512Kernels());
  add(Isa::kAvx512, EmulatedAmxAvx512Kernels());
  add(Isa::kAmx, cpu::AmxKernels());
  return tables;
}

class BoundsTest : public testing::Test {
 protected:
  // Every kernel against scalar code that sees no guards.
  void Compare(TensorType type, int outputs, int cols, int rows) {
    const FileMatrix matrix = RandomMatrix(&random_, type, outputs, cols);
    const auto packed = packer_->Pack(matrix.view());
    ASSERT_TRUE(packed.ok()) << packed.status();
    const auto& panels = cpu::PackedPanels::Of(**packed);
    const auto x = RandomFloats(&random_, int64_t{rows} * cols);
    const Guarded<float> values(x.data(), x.size());
    std::vector<ActivationGroup> groups(x.size() / cpu::kActivationGroup + 1);
    const bool quantized = IsQuantized(type);
    if (quantized) {
      groups.pop_back();
      cpu::ScalarKernels().quantize_row(
          x.data(), static_cast<int64_t>(x.size()), groups.data());
    }
    const Guarded<ActivationGroup> activations(groups.data(), groups.size());
    const Guarded<std::byte> weights(panels.panel(0), panels.bytes());
    const std::vector<float> zeros(rows * outputs);
    cpu::LinearWork work = {
        .type = type,
        .panel = weights.data(),
        .panel_bytes = panels.panel_bytes(),
        .panels = static_cast<int>(panels.panels()),
        .outputs = outputs,
        .cols = cols,
        .x = quantized ? nullptr : values.data(),
        .activations = quantized ? activations.data() : nullptr,
        .rows = rows,
        .out = nullptr,
        .out_stride = outputs,
        .accumulate = false};
    std::vector<float> expected = zeros;
    work.out = expected.data();
    cpu::ScalarKernels().linear(work);
    for (const KernelTable* table : Tables()) {
      const Guarded<float> out(zeros.data(), zeros.size());
      work.out = out.data();
      table->linear(work);
      EXPECT_TRUE(SameValues(expected, {out.data(), out.data() + zeros.size()}))
          << TraitsOf(type).name << ", " << outputs << " outputs, " << rows
          << " rows";
    }
  }

  std::unique_ptr<Backend> packer_ = *MakeCpuBackend({});
  std::mt19937 random_{31};
};

TEST_F(BoundsTest, LinearKernelsStayInsideTheirArrays) {
  for (const TensorType type : kAllTypes) {
    for (const int outputs : {1, 16, 27, 64}) {
      for (const int rows : {1, 3, 6, 16, 23}) {
        Compare(type, outputs, 256, rows);
      }
    }
  }
}

}  // namespace
}  // namespace baton::kernels
