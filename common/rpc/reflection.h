#ifndef BATON_COMMON_RPC_REFLECTION_H_
#define BATON_COMMON_RPC_REFLECTION_H_

namespace baton {

// Whether every server of this process answers gRPC reflection, which tells
// anybody what can be called. Decided when the program is linked (that alone
// makes gRPC serve it): true only in builds configured with BATON_REFLECTION.
bool ReflectionServed();

}  // namespace baton

#endif  // BATON_COMMON_RPC_REFLECTION_H_
