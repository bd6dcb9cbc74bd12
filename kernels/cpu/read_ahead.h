#ifndef BATON_KERNELS_CPU_READ_AHEAD_H_
#define BATON_KERNELS_CPU_READ_AHEAD_H_

#include <cstddef>

namespace baton::kernels::cpu {

// The memory that a thread will read first in a loop to come, as a list of
// pieces in reading order. While the thread waits for that loop it brings them
// into its second-level cache, so that memory is not idle at barriers.
class ReadAhead {
 public:
  static constexpr size_t kMaxBytes = size_t{128} << 10;
  static constexpr int kMaxPieces = 8;

  // Appends memory; false once the list is full.
  bool Add(const std::byte* from, size_t bytes);

  // Fetches the next few lines; false when all have been.
  bool FetchSome() {
    if (next_ == pieces_) return false;
    FetchLines();
    return true;
  }

 private:
  struct Piece {
    const std::byte* from;
    size_t bytes;
  };

  void FetchLines();

  Piece piece_[kMaxPieces];
  int pieces_ = 0;
  int next_ = 0;
  size_t bytes_ = 0;  // of all pieces
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_READ_AHEAD_H_
