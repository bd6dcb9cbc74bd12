#ifndef BATON_COMMON_WORKER_ATTEMPT_TABLE_H_
#define BATON_COMMON_WORKER_ATTEMPT_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/worker/scheduler_events.h"
#include "common/worker/sequence_spec.h"

namespace baton {

// What a scheduler knows of every attempt that it accepted.
struct AttemptJob {
  JobId id;  // given by AttemptTable::Add
  SessionId session;
  AttemptId attempt;
  SequenceRequest request;
  MonotonicTime deadline;
};

// The attempts of a worker. One is open, found by (session, attempt) and by its
// deadline, until Close; then it is known by its job id alone until Erase,
// while a step or a transfer still touches its blocks. `Job` has the names and
// the deadline of an AttemptJob.
template <class Job>
class AttemptTable {
 public:
  // Requires that the session has no open attempt of that id.
  Job& Add(Job job) {
    job.id = JobId(next_job_++);
    const bool added =
        open_.emplace(std::pair(job.session, job.attempt), job.id).second;
    BATON_CHECK(added);
    deadlines_.emplace(job.deadline, job.id);
    const JobId id = job.id;
    return jobs_.emplace(id, std::move(job)).first->second;
  }

  // The open attempt, or null.
  Job* Find(SessionId session, AttemptId attempt) {
    auto it = open_.find(std::pair(session, attempt));
    return it == open_.end() ? nullptr : &jobs_.at(it->second);
  }
  // Open or closed. Requires that it was not erased.
  Job& at(JobId id) { return jobs_.at(id); }

  void Close(const Job& job) {
    open_.erase(std::pair(job.session, job.attempt));
    deadlines_.erase(std::pair(job.deadline, job.id));
  }
  // Requires that it is closed.
  void Erase(JobId id) { jobs_.erase(id); }

  // An open attempt whose deadline is not after `now`, or null.
  Job* Expired(MonotonicTime now) {
    if (NextDeadline() > now) return nullptr;
    return &jobs_.at(deadlines_.begin()->second);
  }
  MonotonicTime NextDeadline() const {
    return deadlines_.empty() ? kNever : deadlines_.begin()->first;
  }

  // Open attempts in the order they were added.
  std::vector<JobId> Open() const {
    return OpenWhere([](SessionId) { return true; });
  }
  std::vector<JobId> OpenOf(SessionId session) const {
    return OpenWhere([&](SessionId other) { return other == session; });
  }

  size_t open() const { return open_.size(); }
  bool empty() const { return jobs_.empty(); }
  size_t size() const { return jobs_.size(); }  // open and closed

  // All jobs by id: (JobId, Job) pairs.
  auto begin() { return jobs_.begin(); }
  auto end() { return jobs_.end(); }
  auto begin() const { return jobs_.begin(); }
  auto end() const { return jobs_.end(); }

 private:
  template <class Wanted>
  std::vector<JobId> OpenWhere(Wanted wanted) const {
    std::vector<JobId> found;
    for (const auto& [key, job] : open_) {
      if (wanted(key.first)) found.push_back(job);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  std::map<JobId, Job> jobs_;
  absl::flat_hash_map<std::pair<SessionId, AttemptId>, JobId> open_;
  std::set<std::pair<MonotonicTime, JobId>> deadlines_;
  uint64_t next_job_ = 1;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_ATTEMPT_TABLE_H_
