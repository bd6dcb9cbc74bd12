#include "tests/simulation/seed_runner.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"

namespace baton::simulation {
namespace {

constexpr size_t kMaxProcesses = 16;

// In memory that the processes share.
struct Board {
  std::atomic<uint64_t> next;
  std::atomic<uint64_t> done;
  std::atomic<bool> failed;
  std::atomic<uint64_t> running[kMaxProcesses];  // the seed of each
};

class SharedBoard {
 public:
  SharedBoard() {
    void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BATON_CHECK(memory != MAP_FAILED);
    board_ = new (memory) Board{};
  }
  ~SharedBoard() { munmap(board_, sizeof(Board)); }
  Board* operator->() { return board_; }

 private:
  Board* board_;
};

// A child process and what it says until its end.
class Child {
 public:
  explicit Child(const std::function<std::string()>& work) {
    int ends[2];
    BATON_CHECK(pipe(ends) == 0);
    std::fflush(nullptr);
    pid_ = fork();
    BATON_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      // An exception ends the child here, not in whoever catches it above.
      const std::string text = [&]() noexcept { return work(); }();
      for (size_t at = 0; at < text.size();) {
        const ssize_t written =
            write(ends[1], text.data() + at, text.size() - at);
        if (written <= 0) break;
        at += static_cast<size_t>(written);
      }
      std::fflush(nullptr);
      _exit(0);
    }
    close(ends[1]);
    pipe_ = ends[0];
  }

  int pipe() const { return pipe_; }
  // False at the end.
  bool Read() {
    char buffer[4096];
    const ssize_t size = read(pipe_, buffer, sizeof(buffer));
    if (size > 0) text_.append(buffer, static_cast<size_t>(size));
    return size > 0;
  }
  // After the end: what it said, or how it died.
  std::optional<std::string> Wait(std::string* death) {
    close(pipe_);
    int status = 0;
    BATON_CHECK(waitpid(pid_, &status, 0) == pid_);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text_;
    *death = WIFSIGNALED(status)
                 ? StrCat("the process died of signal ", WTERMSIG(status))
                 : StrCat("the process ended with ", WEXITSTATUS(status));
    return std::nullopt;
  }

 private:
  static int pipe(int* ends) { return ::pipe(ends); }
  pid_t pid_ = 0;
  int pipe_ = -1;
  std::string text_;
};

std::string Serialize(const Campaign& campaign) {
  std::string text =
      StrCat(campaign.seeds_run, " ", campaign.events, " ",
             campaign.simulated.count(), " ", campaign.digest, "\n");
  if (campaign.failure.has_value()) {
    StrAppend(&text, "F", campaign.failure->seed, " ", campaign.failure->what,
              "\n");
  }
  for (const auto& [what, times] : campaign.counts) {
    StrAppend(&text, "C", times, " ", what, "\n");
  }
  return text;
}

void Fail(uint64_t seed, std::string what, Campaign* campaign) {
  if (!campaign->failure.has_value() || seed < campaign->failure->seed) {
    campaign->failure = {seed, std::move(what)};
  }
}

void Merge(const std::string& text, Campaign* campaign) {
  std::istringstream lines(text);
  uint64_t seeds = 0, events = 0, digest = 0;
  int64_t simulated = 0;
  lines >> seeds >> events >> simulated >> digest;
  campaign->seeds_run += seeds;
  campaign->events += events;
  campaign->simulated += Duration(simulated);
  campaign->digest ^= digest;
  char kind;
  uint64_t number;
  std::string what;
  while (lines >> kind >> number && std::getline(lines >> std::ws, what)) {
    if (kind == 'C') campaign->counts[what] += number;
    if (kind == 'F') Fail(number, what, campaign);
  }
}

std::string WorkOff(uint64_t last, size_t slot, const RunnerOptions& options,
                    SharedBoard* board) {
  Campaign campaign;
  while (!(*board)->failed) {
    const uint64_t seed = (*board)->next++;
    if (seed > last) break;
    (*board)->running[slot] = seed;
    const Outcome outcome = Simulate(seed, options.restriction);
    campaign.Add(outcome);
    ++(*board)->done;
    if (outcome.violation.has_value()) {
      (*board)->failed = true;
      Fail(seed, *outcome.violation, &campaign);
    }
  }
  return Serialize(campaign);
}

}  // namespace

void Campaign::Add(const Outcome& outcome) {
  ++seeds_run;
  events += outcome.events;
  simulated += outcome.simulated;
  digest ^= outcome.digest;
  for (const auto& [what, times] : outcome.counts) counts[what] += times;
}

uint64_t Campaign::CountOf(std::string_view what) const {
  const auto it = counts.find(what);
  return it == counts.end() ? 0 : it->second;
}

std::string Campaign::ToString() const {
  char hours[32];
  std::snprintf(hours, sizeof(hours), "%.1f", Seconds(simulated) / 3600);
  std::string text = StrCat(seeds_run, " seeds, ", hours, " simulated hours, ",
                            events, " events, digest ", digest, "\n");
  for (const auto& [what, times] : counts) {
    StrAppend(&text, "  ", times, " ", what, "\n");
  }
  return text;
}

Campaign RunSeeds(uint64_t first, uint64_t last, const RunnerOptions& options) {
  SharedBoard board;
  board->next = first;
  size_t processes = options.processes;
  if (processes == 0) processes = std::thread::hardware_concurrency();
  processes = std::clamp<size_t>(processes, 1, kMaxProcesses);
  std::vector<Child> children;
  for (size_t slot = 0; slot < processes; ++slot) {
    children.emplace_back(
        [&, slot] { return WorkOff(last, slot, options, &board); });
  }
  const bool progress = options.progress && isatty(STDERR_FILENO);
  std::vector<pollfd> open;
  for (const Child& child : children) {
    open.push_back({child.pipe(), POLLIN, 0});
  }
  for (size_t left = open.size(); left > 0;) {
    BATON_CHECK(poll(open.data(), open.size(), 200) >= 0);
    for (size_t i = 0; i < open.size(); ++i) {
      if (open[i].fd < 0 || open[i].revents == 0) continue;
      if (children[i].Read()) continue;
      open[i].fd = -1;
      --left;
    }
    if (progress) {
      std::fprintf(stderr, "\r%llu of %llu seeds",
                   static_cast<unsigned long long>(board->done),
                   static_cast<unsigned long long>(last - first + 1));
    }
  }
  if (progress) std::fprintf(stderr, "\n");
  Campaign campaign;
  for (size_t slot = 0; slot < children.size(); ++slot) {
    std::string death;
    if (const auto text = children[slot].Wait(&death)) {
      Merge(*text, &campaign);
    } else {
      Fail(board->running[slot], death, &campaign);
    }
  }
  return campaign;
}

std::optional<std::string> RunApart(uint64_t seed,
                                    const Restriction& restriction) {
  Child child(
      [&] { return Simulate(seed, restriction).violation.value_or(""); });
  while (child.Read()) {
  }
  std::string death;
  const std::optional<std::string> text = child.Wait(&death);
  if (!text.has_value()) return death;
  if (text->empty()) return std::nullopt;
  return text;
}

std::string ReplayCommand(uint64_t seed, const Restriction& restriction) {
  std::string command = StrCat("build/release/tests/simulation_run --seed ",
                               seed, restriction.ToFlags());
  if (!chosen_mutant.empty()) StrAppend(&command, " --mutant ", chosen_mutant);
  return command + " --trace";
}

}  // namespace baton::simulation
