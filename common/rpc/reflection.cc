#include "common/rpc/reflection.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>

namespace baton {

bool ReflectionServed() {
  // Keeps the library from being left out as unused.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  return true;
}

}  // namespace baton
