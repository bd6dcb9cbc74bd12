#ifndef BATON_ROUTER_REQUEST_FLOW_WORKER_TABLE_H_
#define BATON_ROUTER_REQUEST_FLOW_WORKER_TABLE_H_

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "router/request_flow/events.h"
#include "router/routing/worker_view.h"

namespace baton::router {

// The workers of one router, in order of index. Pure; not thread-safe.
class WorkerTable {
 public:
  struct Options {
    uint32_t vocabulary_size = 0;  // workers with another are incompatible
    // Until then workers that never had a session count as expected, and so
    // does a worker of a configured role of which none is known.
    MonotonicTime startup_end = MonotonicTime::min();
    bool prefill_configured = false;
    bool decode_configured = false;
  };
  explicit WorkerTable(Options options) : options_(options) {}

  void Add(const WorkerAdded& added);
  void Remove(WorkerIndex index);
  // Nullptr when unknown; valid until Remove.
  WorkerView* Find(WorkerIndex index);

  // Fills the view from a hello. Not OK: the protocol is broken and the session
  // must end. A worker that merely cannot be used becomes kIncompatible.
  absl::Status Up(const SessionUp& up, MonotonicTime now);
  void Down(WorkerView* worker, const absl::Status& status);
  // The other addresses under which the process behind `used` is known (the
  // same role and epoch), those that are duplicates already first.
  std::vector<WorkerView*> TwinsOf(const WorkerView& used);
  // `twin` leads to the same process as `used`.
  static void MarkDuplicate(WorkerView* twin, const WorkerView& used);
  // Ends that for all duplicates of `used`, and returns them.
  std::vector<WorkerIndex> ReleaseTwins(WorkerIndex used);
  // Not OK: events were lost or repeated.
  static absl::Status CountEvent(WorkerView* worker, uint64_t sequence,
                                 MonotonicTime now);
  // Not OK: it says what cannot be.
  static absl::Status ApplyLoad(WorkerView* worker, const v1::WorkerLoad& load,
                                MonotonicTime now);

  absl::Span<const WorkerView* const> views() const { return views_; }
  // A worker of this role may still appear for the first time.
  bool Expected(v1::WorkerRole role, MonotonicTime now) const;
  // Some place exists, and no prefill worker that would make a better one is
  // still expected.
  bool Complete(MonotonicTime now) const;
  bool AnyCredit() const;
  // The largest that a healthy decode worker has, 0 without one.
  uint32_t MaxContextTokens() const;
  uint64_t MaxKvBlocks() const;
  uint32_t MaxSequences() const;
  // Of all healthy workers that prefill, by their costs; 0 when none tells
  // them.
  double PrefillTokensPerSecond() const;

 private:
  void RebuildViews();
  template <class Value>
  Value LargestAtDecode(Value (v1::WorkerHello::*value)() const) const;

  const Options options_;
  std::map<WorkerIndex, WorkerView> workers_;
  std::vector<const WorkerView*> views_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_REQUEST_FLOW_WORKER_TABLE_H_
