#include "kernels/cpu/read_ahead.h"

#include <algorithm>

namespace baton::kernels::cpu {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kLinesAtOnce = 4;

}  // namespace

bool ReadAhead::Add(const std::byte* from, size_t bytes) {
  bytes = std::min(bytes, kMaxBytes - bytes_);
  if (bytes > 0 && pieces_ < kMaxPieces) {
    piece_[pieces_++] = {from, bytes};
    bytes_ += bytes;
  }
  return bytes_ < kMaxBytes && pieces_ < kMaxPieces;
}

void ReadAhead::FetchLines() {
  constexpr int kRead = 0, kSecondLevel = 2;
  Piece& piece = piece_[next_];
  const size_t bytes = std::min(piece.bytes, kLinesAtOnce * kLine);
  for (size_t at = 0; at < bytes; at += kLine) {
    __builtin_prefetch(piece.from + at, kRead, kSecondLevel);
  }
  piece.from += bytes;
  piece.bytes -= bytes;
  if (piece.bytes == 0) ++next_;
}

}  // namespace baton::kernels::cpu
