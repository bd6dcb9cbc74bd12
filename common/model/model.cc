#include "common/model/model.h"

#include <atomic>
#include <bit>
#include <future>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/base/check.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/model/activations.h"
#include "common/model/llama_forward.h"
#include "common/model/llama_weights.h"
#include "common/model/rope.h"
#include "common/model/tensor_plan.h"
#include "kernels/api/numerics_class.h"

namespace baton {
namespace {

std::string Fingerprint(const std::string& file_digest,
                        const ModelConfig& config, WeightFormat weights,
                        const kernels::KvLayout& layout) {
  Sha256 hash;
  hash.UpdateField("baton model 2")
      .UpdateField(kernels::kNumericsClass)
      .UpdateU32(kernels::kNumericsRevision);
  hash.UpdateField(file_digest).UpdateField(config.architecture);
  for (int number :
       {config.layers, config.width, config.heads, config.kv_heads,
        config.head_dim, config.ffn_width, config.vocabulary, config.context,
        config.rotary_dims, layout.layers, layout.kv_heads, layout.head_dim,
        kernels::KvLayout::kTokens}) {
    hash.UpdateU64(static_cast<uint64_t>(number));
  }
  hash.UpdateU32(std::bit_cast<uint32_t>(config.rms_epsilon));
  hash.UpdateU64(std::bit_cast<uint64_t>(config.rope_base));
  hash.UpdateField(kernels::KvTypeName(layout.type));
  hash.UpdateField(WeightFormatName(weights));
  const Sha256Digest digest = hash.Finish();
  return {digest.begin(), digest.end()};
}

// The hash of the file, on a thread of its own where there is one. Its end is
// waited for, so that it is told when nobody needs it any more.
std::future<std::string> HashBeside(const GgufFile& file,
                                    const std::atomic<bool>& needless) {
  const auto hash = [&] {
    return file.Sha256([&] { return needless.load(); });
  };
  try {
    return std::async(std::launch::async, hash);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, hash);
  }
}

}  // namespace

struct Model::Impl {
  LlamaForward Pass(Scratch* scratch) const {
    return {config, layout,  weights,
            rope,   backend, static_cast<Activations*>(scratch)};
  }

  ModelConfig config;
  kernels::KvLayout layout;
  kernels::Backend* backend;
  LlamaWeights weights;
  Rope rope;
  std::string fingerprint;
};

Model::Model() = default;
Model::~Model() = default;

absl::StatusOr<std::unique_ptr<Model>> Model::Load(
    const GgufFile& file, kernels::Backend* backend,
    const ModelOptions& options) {
  BATON_ASSIGN_OR_RETURN(ModelConfig config, ModelConfig::FromGguf(file));
  const kernels::KvLayout layout = config.kv_layout(options.kv_type);
  BATON_RETURN_IF_ERROR(CheckTensors(file, config));
  BATON_RETURN_IF_ERROR(CheckWeightFormat(file, options.load.format));
  std::atomic<bool> failed = false;
  std::future<std::string> digest = HashBeside(file, failed);
  absl::StatusOr<LlamaWeights> loaded =
      LlamaWeights::Load(file, config, backend, options.load);
  if (!loaded.ok()) {
    failed = true;
    return loaded.status();
  }
  LlamaWeights weights = *std::move(loaded);
  Rope rope(config, weights.rope_factors);
  std::string fingerprint =
      Fingerprint(digest.get(), config, options.load.format, layout);

  std::unique_ptr<Model> model(new Model);
  model->impl_.reset(new Impl{std::move(config), layout, backend,
                              std::move(weights), std::move(rope),
                              std::move(fingerprint)});
  return model;
}

const ModelConfig& Model::config() const { return impl_->config; }
const kernels::KvLayout& Model::kv_layout() const { return impl_->layout; }
kernels::Backend* Model::backend() const { return impl_->backend; }
const std::string& Model::fingerprint() const { return impl_->fingerprint; }
size_t Model::weight_bytes() const { return impl_->weights.bytes; }

std::unique_ptr<Model::Scratch> Model::NewScratch(int max_rows) const {
  BATON_CHECK(max_rows > 0);
  return std::make_unique<Activations>(impl_->config, max_rows);
}

void Model::Forward(absl::Span<const ForwardSpan> spans, Scratch* scratch,
                    absl::Span<bool> finite) const {
  BATON_CHECK(finite.size() == spans.size());
  impl_->Pass(scratch).Run(spans, finite);
}

const float* Model::Logits(Scratch* scratch, int first, int count) const {
  return impl_->Pass(scratch).Logits(first, count);
}

}  // namespace baton
