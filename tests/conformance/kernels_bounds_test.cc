// Kernels read nothing behind their inputs, and write nothing behind their
// outputs or scratch: all end where a page begins that may not be touched.
// Tiles prefetch past the end of weights and of KV blocks, which is allowed to
// miss.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "kernels/api/block_formats.h"
#include "kernels/cpu/kv_store.h"
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

struct AttentionShape {
  int kv_heads, heads, head_dim;  // heads of one kv head
  int first_position, rows;
  bool split;  // the last split of the context alone
};

// Of the last layer, whose last head ends its block.
class AttentionBoundsTest : public BoundsTest {
 protected:
  void Compare(const AttentionShape& shape, KvType type) {
    SCOPED_TRACE(testing::Message()
                 << KvTypeName(type) << ", " << shape.kv_heads << " x "
                 << shape.heads << " heads of " << shape.head_dim << ", "
                 << shape.rows << " rows from " << shape.first_position);
    const KvLayout layout = {2, shape.kv_heads, shape.head_dim, type};
    const int positions = shape.first_position + shape.rows;
    const int begin = shape.split ? (positions - 1) / cpu::kAttentionSplit *
                                        cpu::kAttentionSplit
                                  : 0;
    MakeBlocks(layout, positions);
    const int width = shape.kv_heads * shape.heads * shape.head_dim;
    const auto q = RandomFloats(&random_, int64_t{shape.rows} * width);
    const Guarded<float> queries(q.data(), q.size());
    cpu::AttentionWork work = {.blocks = pointers_.data(),
                               .type = type,
                               .k_offset = layout.k_offset(kLayer, 0),
                               .v_offset = layout.v_offset(kLayer, 0),
                               .code_bytes = layout.code_bytes(),
                               .head_bytes = layout.head_bytes(),
                               .head_dim = shape.head_dim,
                               .kv_heads = shape.kv_heads,
                               .heads = shape.heads,
                               .first_position = shape.first_position,
                               .rows = shape.rows,
                               .context_begin = begin,
                               .context_end = positions,
                               .q = queries.data(),
                               .out = nullptr,
                               .row_stride = width,
                               .scale = 0.125f,
                               .partials = nullptr,
                               .scratch = nullptr};
    const std::vector<float> zeros(
        shape.split ? work.vectors() * cpu::PartialFloats(shape.head_dim)
                    : q.size());
    const std::vector<float> scratch(
        cpu::AttentionScratchFloats(shape.head_dim, work.vectors()));
    std::vector<float> expected;
    for (const KernelTable* table : Tables()) {
      const Guarded<float> out(zeros.data(), zeros.size());
      const Guarded<float> space(scratch.data(), scratch.size());
      (shape.split ? work.partials : work.out) = out.data();
      work.scratch = space.data();
      table->attention(work);
      const std::vector<float> found(out.data(), out.data() + zeros.size());
      if (expected.empty()) expected = found;
      EXPECT_TRUE(SameValues(expected, found));
    }
  }

 private:
  static constexpr int kLayer = 1;

  void MakeBlocks(const KvLayout& layout, int positions) {
    std::vector<std::byte> block(layout.block_bytes());
    pointers_.clear();
    blocks_.clear();
    for (int first = 0; first < positions; first += KvLayout::kTokens) {
      for (int t = first; t < std::min(first + KvLayout::kTokens, positions);
           ++t) {
        for (int h = 0; h < layout.kv_heads; ++h) {
          const auto k = RandomFloats(&random_, layout.head_dim);
          const auto v = RandomFloats(&random_, layout.head_dim);
          cpu::StoreKeyHead(cpu::ScalarKernels(), layout, kLayer, h, t,
                            k.data(), block.data());
          cpu::StoreValueHead(cpu::ScalarKernels(), layout, kLayer, h, t,
                              v.data(), block.data());
        }
      }
      blocks_.push_back(
          std::make_unique<Guarded<std::byte>>(block.data(), block.size()));
      pointers_.push_back(blocks_.back()->data());
    }
  }

  std::vector<std::unique_ptr<Guarded<std::byte>>> blocks_;
  std::vector<std::byte*> pointers_;
};

TEST_F(AttentionBoundsTest, AttentionStaysInsideItsBlocks) {
  for (const KvType type : kAllKvTypes) {
    for (const int head_dim : {4, 16, 20, 36, 64, 80, 128}) {
      for (const int heads : {1, 3, 8, 9}) {
        for (const bool split : {false, true}) {
          Compare({2, heads, head_dim, 70, 1, split}, type);
          Compare({1, heads, head_dim, 0, 5, split}, type);
          Compare({3, heads, head_dim, 509, 5, split}, type);
        }
      }
    }
  }
}

}  // namespace
}  // namespace baton::kernels
