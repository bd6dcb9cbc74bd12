#include "common/weights/load_options.h"

namespace baton {
std::string_view WeightFormatName(WeightFormat format) {
  return format == WeightFormat::kInt8 ? "int8" : "file";
}

std::optional<WeightFormat> ParseWeightFormat(std::string_view name) {
  for (const WeightFormat format : {WeightFormat::kFile, WeightFormat::kInt8}) {
    if (name == WeightFormatName(format)) return format;
  }
  return std::nullopt;
}

}  // namespace baton
