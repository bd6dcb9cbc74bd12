#ifndef BATON_TESTS_BENCH_FOREIGN_LOAD_H_
#define BATON_TESTS_BENCH_FOREIGN_LOAD_H_

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace baton {

// Processes that compute without end, as neighbours on a machine do, for as
// long as the object lives.
class ForeignLoad {
 public:
  explicit ForeignLoad(uint32_t processes);
  ~ForeignLoad();
  ForeignLoad(const ForeignLoad&) = delete;
  ForeignLoad& operator=(const ForeignLoad&) = delete;

 private:
  std::vector<pid_t> children_;
};

}  // namespace baton

#endif  // BATON_TESTS_BENCH_FOREIGN_LOAD_H_
