#include "decode_worker/speculation/speculation.h"

#include "decode_worker/speculation/ngram_drafter.h"
#include "decode_worker/speculation/suffix_drafter.h"

namespace baton::decode {

MakeDrafter DrafterNamed(std::string_view name) {
  if (name == "ngram") {
    return [](const Sequence&) { return std::make_unique<NgramDrafter>(); };
  }
  if (name == "suffix") {
    return [](const Sequence&) { return std::make_unique<SuffixDrafter>(); };
  }
  return nullptr;
}

}  // namespace baton::decode
