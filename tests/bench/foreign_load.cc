#include "tests/bench/foreign_load.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace baton {

ForeignLoad::ForeignLoad(uint32_t processes) {
  for (uint32_t i = 0; i < processes; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) asm volatile("");
    }
    if (child > 0) children_.push_back(child);
  }
}

ForeignLoad::~ForeignLoad() {
  for (const pid_t child : children_) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

}  // namespace baton
