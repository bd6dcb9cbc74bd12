#include "decode_worker/speculation/speculation.h"

#include "decode_worker/speculation/ngram_drafter.h"
#include "decode_worker/speculation/suffix_drafter.h"

namespace baton::decode {

DrafterKinds DraftersNamed(std::string_view name) {
  const MakeDrafter ngram = [](const Sequence& sequence) {
    return std::make_unique<NgramDrafter>(sequence.params().prompt.size());
  };
  const MakeDrafter suffix = [](const Sequence& sequence) {
    return std::make_unique<SuffixDrafter>(sequence.params().prompt.size());
  };
  if (name == "ngram") return {ngram};
  if (name == "suffix") return {suffix, ngram};
  return {};
}

}  // namespace baton::decode
