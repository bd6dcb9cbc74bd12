#include "common/rpc/reflection.h"

namespace baton {

bool ReflectionServed() { return false; }

}  // namespace baton
