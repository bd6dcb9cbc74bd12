// Any sequence of prefixes kept, found, held and dropped against a model that
// keeps them by what they say.
#include <cstdint>

#include "tests/fuzz/fuzz_input.h"
#include "tests/unit/common/kv_cache/prefix_cache_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 2048) return 0;
  baton::fuzz::FuzzInput input(data, size);
  const uint32_t blocks = 1 + input.Below(24);
  baton::PrefixCacheModel model(
      blocks, [&](uint32_t below) { return input.Below(below); });
  while (!input.empty()) {
    model.Step();
    model.Check();
  }
  model.Finish();
  return 0;
}
