#ifndef BATON_ROUTER_REQUEST_FLOW_EVENTS_H_
#define BATON_ROUTER_REQUEST_FLOW_EVENTS_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "proto/decode.pb.h"
#include "proto/generation.pb.h"
#include "proto/prefill.pb.h"
#include "router/routing/worker_view.h"

// What a RouterCore is told, and what it wants done. Values only.
namespace baton::router {

// ---- events ----

// A validated, resolved and tokenised request.
struct ClientRequest {
  RequestId id;           // never used before in this process
  v1::SequenceSpec spec;  // choices 0..n-1, none with generated tokens
  MonotonicTime received;
  MonotonicTime deadline;
  int priority = 1;   // 0 = high, 1 = normal, 2 = low
  std::string label;  // x-request-id, for Served.request_id
  // Whose request it is, as the credential says; "" without credentials.
  std::string tenant;
  // Only requests with the same salt may share cached prompts.
  std::string cache_salt;
  // The client gets so many of the choices, the best, when all have ended
  // (BestAnswers); 0: all, as they come. Workers report logprobs then.
  uint32_t best = 0;
  bool tell_logprobs = true;  // to the client, of the best
};
struct ClientCancelled {
  RequestId id;
  // How the request ends; not OK. Of the client's own accord: at its deadline,
  // which may come a little earlier there than here, DEADLINE_EXCEEDED instead.
  absl::Status status = absl::CancelledError("cancelled by the client");
};

// A worker became known; its session is not up yet.
struct WorkerAdded {
  WorkerIndex worker;
  v1::WorkerRole role = v1::WORKER_ROLE_UNSPECIFIED;
  std::string address;
};
// A worker will not be seen again. Ends its session if that is up.
struct WorkerRemoved {
  WorkerIndex worker;
};
// The worker's hello, which is event number 1 of the session; the next event
// carries number 2. Ends an older session of the same worker. An unknown
// worker is added.
struct SessionUp {
  WorkerIndex worker;
  v1::WorkerRole role = v1::WORKER_ROLE_UNSPECIFIED;  // expected
  v1::WorkerHello hello;
  // RouterHello.session: at one worker the highest has fenced the others.
  uint64_t session = 0;
};
// The session ended, or an attempt to open one failed.
struct SessionDown {
  WorkerIndex worker;
  absl::Status status;
};
struct PrefillMessage {
  WorkerIndex worker;
  v1::PrefillEvent event;
};
struct DecodeMessage {
  WorkerIndex worker;
  v1::DecodeEvent event;
};

// From now on new requests are refused; running ones go on.
struct Drain {};
// Ends every request with this status, which is not OK.
struct Terminate {
  absl::Status status;
};
// Time has passed: due at NextDeadline().
struct Tick {};

using Event =
    std::variant<ClientRequest, ClientCancelled, WorkerAdded, WorkerRemoved,
                 SessionUp, SessionDown, PrefillMessage, DecodeMessage, Drain,
                 Terminate, Tick>;

// ---- actions, to be carried out in order ----

struct SendToPrefill {
  WorkerIndex worker;
  v1::PrefillCommand command;
};
struct SendToDecode {
  WorkerIndex worker;
  v1::DecodeCommand command;
};
struct EmitToClient {
  RequestId id;
  v1::GenerateEvent event;
  bool held_back = false;  // by the core: the client could not read earlier
};
// Tokens of one choice came and are held back: their client sees none yet.
struct HeldBack {
  RequestId id;
  uint32_t choice = 0;
  uint32_t tokens = 0;
  bool text = false;    // they have any
  bool finish = false;  // the choice ended with them
};
// Exactly once per ClientRequest, and the last action for it. When OK, the
// last emitted event carried usage and served.
struct FinishClient {
  RequestId id;
  absl::Status status;
};
// The worker broke the protocol or went silent; for the core the session has
// ended already. The driver closes it and opens a new one; a SessionDown for
// it may follow and is harmless.
struct CloseSession {
  WorkerIndex worker;
  std::string reason;
  // False: opens no new one before OpenSession. Another session leads to the
  // same worker, and the two would fence each other for ever.
  bool reopen = true;
};
// Undoes a CloseSession without `reopen`.
struct OpenSession {
  WorkerIndex worker;
};

using Action = std::variant<SendToPrefill, SendToDecode, EmitToClient, HeldBack,
                            FinishClient, CloseSession, OpenSession>;
using Actions = std::vector<Action>;

}  // namespace baton::router

#endif  // BATON_ROUTER_REQUEST_FLOW_EVENTS_H_
