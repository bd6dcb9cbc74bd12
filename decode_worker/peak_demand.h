#ifndef BATON_DECODE_WORKER_PEAK_DEMAND_H_
#define BATON_DECODE_WORKER_PEAK_DEMAND_H_

#include <cstdint>
#include <vector>

namespace baton::decode {

// The most blocks that will be in use at one time, when every choice in the
// batch grows by one row a step and gives its blocks back after its last one.
// Exact, not the sum of all demands: who ends early makes room for who grows
// long (as LightLLM's past-future scheduler reasons, in blocks). Pure.
class PeakDemand {
 public:
  // `blocks` in use now and for `steps` more steps.
  void AddHeld(uint32_t blocks, uint32_t steps);

  // A choice with KV in `rows` rows now and in rows + steps at its end; the
  // first `shared` of its blocks are counted elsewhere, by AddHeld.
  void AddChoice(uint32_t rows, uint32_t steps, uint32_t shared);

  // O(n log n).
  uint64_t Peak() const;

 private:
  struct Use {
    uint32_t steps = 0;
    uint32_t blocks = 0;  // whole, for all the time
    bool grows = false;
    uint32_t rows = 0;  // besides, if it grows
  };
  std::vector<Use> uses_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_PEAK_DEMAND_H_
