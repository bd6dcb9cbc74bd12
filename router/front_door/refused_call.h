#ifndef BATON_ROUTER_FRONT_DOOR_REFUSED_CALL_H_
#define BATON_ROUTER_FRONT_DOOR_REFUSED_CALL_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/version_info.h>

#include "absl/status/status.h"
#include "common/rpc/status.h"
#include "router/front_door/router_driver.h"

namespace baton::router {

// The one place that leans on an internal of gRPC. OnDone of a reactor goes
// through an executor thread, unless the reactor says that it may run inline,
// where the last operation ended; the public API has that for the default
// reactor of unary calls only, none for streams, not even generic ones. With a
// version that it was not checked with the executor is used, which only makes
// refusals dearer; who wants to add one looks at
// grpcpp/support/server_callback.h and runs tests/load/refusal_bench. Without
// `override`: a version may do without the function.
class InlineDoneReactor : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
  static constexpr bool kChecked =
      GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR == 51;
  virtual bool InternalInlineable() { return kChecked; }
};

// A Generate stream of a status and nothing else: in a storm most are, so it
// is one batch of gRPC and wakes no other thread. Deletes itself.
class RefusedCall final : public InlineDoneReactor {
 public:
  // `driver` outlives the call.
  RefusedCall(RouterDriver* driver, const absl::Status& status)
      : driver_(driver) {
    driver_->CallOpened(CallKind::kRefusal);
    Finish(ToGrpcStatus(status));
  }

  void OnDone() override {
    driver_->CallClosed(CallKind::kRefusal);
    delete this;
  }

 private:
  ~RefusedCall() override = default;

  RouterDriver* const driver_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_REFUSED_CALL_H_
