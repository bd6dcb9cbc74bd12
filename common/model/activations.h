#ifndef BATON_COMMON_MODEL_ACTIVATIONS_H_
#define BATON_COMMON_MODEL_ACTIVATIONS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "common/model/model.h"
#include "kernels/api/backend.h"

namespace baton {

// Uninitialised fp32 memory on cache-line boundaries.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  explicit FloatBuffer(size_t size);
  // Makes room for `size` values; the content is lost when it must grow.
  void Reserve(size_t size);
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float, Free> data_;
  size_t size_ = 0;
};

// The buffers of one forward pass, for up to `max_rows` rows. Logits grow with
// the rows that are asked for at once.
class Activations final : public Model::Scratch {
 public:
  Activations(const ModelConfig& config, int max_rows);

  const int max_rows;
  FloatBuffer residual;            // [rows, width]; at last only wanted rows
  FloatBuffer query;               // [rows, heads * head_dim]
  FloatBuffer attention;           // [rows, heads * head_dim]
  FloatBuffer logits;              // [rows asked for, vocabulary]
  FloatBuffer cos;                 // [rows, rotary_dims / 2]
  FloatBuffer sin;                 // [rows, rotary_dims / 2]
  std::unique_ptr<bool[]> finite;  // [rows]
  std::unique_ptr<bool[]> wanted_finite;  // [rows wanted]

  // Rebuilt by every pass.
  std::vector<uint32_t> ids;                     // [rows]
  std::vector<int32_t> positions;                // [rows]
  std::vector<int> wanted;                       // rows whose logits are wanted
  std::vector<kernels::SequenceRows> sequences;  // one per span
  std::vector<kernels::SequenceRows> wanted_sequences;  // rows as in `wanted`
};

}  // namespace baton

#endif  // BATON_COMMON_MODEL_ACTIVATIONS_H_
