#include "kv_transfer/ucx/ucx_context.h"

#include <gtest/gtest.h>

namespace baton::transfer {
namespace {

TEST(UcxContextTest, KnowsWhichTransportsShareAQueue) {
  for (const char* shared :
       {"all", "self,sysv", "posix", "self,sysv,posix,cma,tcp", "mm,tcp", "shm",
        "tcp,sm", "xpmem,tcp", "\\sysv,tcp", "sysv:aux", "^tcp", "^sysv",
        "^posix,cma", "^"}) {
    EXPECT_TRUE(NamesSharedQueues(shared)) << shared;
  }
  for (const char* apart :
       {"tcp", "self,tcp", "cma,tcp", "^sysv,posix", "^posix,cma,sysv", "^mm",
        "^shm,cma", "^sm", "rc,ud,self", "sysvx,tcp"}) {
    EXPECT_FALSE(NamesSharedQueues(apart)) << apart;
  }
}

}  // namespace
}  // namespace baton::transfer
