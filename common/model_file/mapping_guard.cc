#include "common/model_file/mapping_guard.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace baton {
namespace {

constexpr int kSlots = 16;
constexpr size_t kMaxPathBytes = 512;
constexpr char kMessage[] = ": model file changed while it was read\n";

// Read by the signal handler: complete while `begin` is not 0.
struct Slot {
  std::atomic<uintptr_t> begin = 0;
  std::atomic<uintptr_t> end = 0;
  char line[kMaxPathBytes + sizeof(kMessage)] = {};
  size_t line_bytes = 0;
};

Slot slots[kSlots];
std::mutex slots_mutex;
bool taken[kSlots];  // slots_mutex
struct sigaction previous;

void OnBusError(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Slot& slot : slots) {
    const uintptr_t begin = slot.begin.load();
    if (begin == 0 || address < begin || address >= slot.end.load()) continue;
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, slot.line, slot.line_bytes);
    _exit(MappingGuard::kExitCode);
  }
  // Returning runs the faulting instruction again, under the old handler.
  sigaction(signal, &previous, nullptr);
}

void InstallOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous);
  });
}

}  // namespace

MappingGuard::MappingGuard(absl::Span<const std::byte> bytes,
                           const std::string& path) {
  if (bytes.empty()) return;
  InstallOnce();
  std::lock_guard lock(slots_mutex);
  const bool* free = std::find(std::begin(taken), std::end(taken), false);
  if (free == std::end(taken)) return;
  slot_ = static_cast<int>(free - taken);
  taken[slot_] = true;
  Slot& slot = slots[slot_];
  const size_t shown = std::min(path.size(), kMaxPathBytes);
  std::memcpy(slot.line, path.data(), shown);
  std::memcpy(slot.line + shown, kMessage, sizeof(kMessage) - 1);
  slot.line_bytes = shown + sizeof(kMessage) - 1;
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  slot.end = begin + bytes.size();
  slot.begin = begin;
}

MappingGuard::~MappingGuard() {
  if (slot_ < 0) return;
  std::lock_guard lock(slots_mutex);
  slots[slot_].begin = 0;
  taken[slot_] = false;
}

}  // namespace baton
