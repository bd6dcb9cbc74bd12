#ifndef BATON_ROUTER_FRONT_DOOR_REFUSED_CALL_H_
#define BATON_ROUTER_FRONT_DOOR_REFUSED_CALL_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "common/rpc/status.h"
#include "router/front_door/router_driver.h"

namespace baton::router {

// A Generate stream of a status and nothing else: in a storm most are, so it
// is one batch of gRPC and wakes no other thread. Deletes itself.
class RefusedCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  // `driver` outlives the call.
  RefusedCall(RouterDriver* driver, const absl::Status& status)
      : driver_(driver) {
    driver_->CallOpened();
    Finish(ToGrpcStatus(status));
  }

  void OnDone() override {
    driver_->CallClosed();
    delete this;
  }

 private:
  ~RefusedCall() override = default;
  // Spares OnDone the way through gRPC's executor thread.
  bool InternalInlineable() override { return true; }

  RouterDriver* const driver_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_REFUSED_CALL_H_
