#include "common/model_file/ggml_type.h"

#include "common/base/strings.h"

namespace baton {
namespace {

constexpr GgmlType kTypes[] = {
    {0, "F32", 1, 4},       {1, "F16", 1, 2},       {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},    {6, "Q5_0", 32, 22},    {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},    {12, "Q4_K", 256, 144}, {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210}, {30, "BF16", 1, 2},
};

}  // namespace

absl::Span<const GgmlType> SupportedGgmlTypes() { return kTypes; }

const GgmlType* FindGgmlType(uint32_t number) {
  for (const GgmlType& type : kTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

std::string SupportedGgmlTypeNames() {
  std::string names;
  for (const GgmlType& type : kTypes) {
    StrAppend(&names, names.empty() ? "" : ", ", type.name);
  }
  return names;
}

}  // namespace baton
