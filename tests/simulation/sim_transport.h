#ifndef BATON_TESTS_SIMULATION_SIM_TRANSPORT_H_
#define BATON_TESTS_SIMULATION_SIM_TRANSPORT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kv_transfer/transport.h"
#include "tests/simulation/partitions.h"
#include "tests/simulation/virtual_time.h"

namespace baton::simulation {

class SimTransport;

struct NetworkFaults {
  Duration min_delay = std::chrono::microseconds(20);
  Duration max_delay = std::chrono::milliseconds(3);
  // How long the bytes of a payload keep moving after its header arrived.
  Duration max_payload_time = std::chrono::milliseconds(4);
  // From Close, or the loss of the peer, to the fence OnClosed.
  Duration max_close_time = std::chrono::milliseconds(50);
  // Messages of a link complete in the order sent, or in any order.
  bool completions_in_order = true;
  double break_per_message = 0;       // the link dies
  double stall_per_message = 0;       // the link is silent for stall_time
  double flip_per_message = 0;        // one bit of the payload arrives wrong
  double send_error_per_message = 0;  // OnSent says no, the bytes still arrive
  double duplicate_per_message = 0;   // arrives again, behind later ones
  Duration stall_time = std::chrono::seconds(20);
};

// The data network: links between the transports of one cluster. A payload is
// read from the sender's memory some time after Send and written into the
// receiver's span some time after OnHeader, in two halves, each at an instant
// of its own: whoever lets go of memory before OnSent, OnMessage or OnClosed
// is caught by what the late read or write does.
class SimNetwork {
 public:
  // `events` and `partitions` outlive the network, the network its transports.
  SimNetwork(EventQueue* events, const Partitions* partitions, Random random,
             NetworkFaults faults);
  ~SimNetwork();

  // `wake` is called when Progress has something to do. `process` is the name
  // by which partitions know it.
  std::unique_ptr<SimTransport> NewTransport(std::string process,
                                             std::string address,
                                             std::function<void()> wake);
  // From now on nothing goes wrong.
  void Heal();

  // A span that a message may still read (sender) or write (receiver).
  struct Claim {
    uint64_t message;
    const std::byte* memory;
    bool write;
  };
  // Those in the memory of the transport's process.
  std::vector<Claim> Claims(const SimTransport* transport) const;

  struct Counters {
    uint64_t messages = 0, broken_links = 0, stalled_links = 0;
    uint64_t flipped_bits = 0, send_errors = 0, duplicates = 0;
    uint64_t closed_with_writes_pending = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  friend class SimTransport;
  struct End;
  struct Message;

  void Start(const std::shared_ptr<End>& from, transfer::SendId send,
             absl::Span<const std::byte> header,
             absl::Span<const std::byte> payload);
  void DepartNext(const std::shared_ptr<End>& from);
  void Depart(const std::shared_ptr<Message>& message);
  void Arrive(const std::shared_ptr<Message>& message, MonotonicTime when);
  // The bytes of a message once more.
  void Repeat(const std::shared_ptr<Message>& message);
  void Place(const std::shared_ptr<Message>& message,
             absl::Span<std::byte> destination);
  void BeginClose(const std::shared_ptr<End>& end, absl::Status status);
  void FinishClose(const std::shared_ptr<End>& end);
  // Tells the peer when word can reach it.
  void TellOfClose(const std::string& process, const std::shared_ptr<End>& peer,
                   absl::Status status);
  Duration Delay();

  EventQueue* events_;
  const Partitions* partitions_;
  Random random_;
  NetworkFaults faults_;
  Counters counters_;
  uint64_t next_message_ = 1;
  std::map<std::string, SimTransport*> transports_;
};

// One process's end of the network. Destroying it is the death of the process.
class SimTransport : public transfer::Transport {
 public:
  ~SimTransport() override;

  std::string_view name() const override { return "sim"; }
  std::string address() const override { return address_; }
  absl::StatusOr<transfer::LinkId> Connect(std::string_view address) override;
  absl::Status Send(transfer::LinkId link, transfer::SendId send,
                    absl::Span<const std::byte> header,
                    absl::Span<const std::byte> payload) override;
  void Close(transfer::LinkId link) override;
  bool Progress(transfer::TransportHandler* handler) override;
  void Wait(Duration) override {}
  void Wake() override {}

  size_t links() const { return ends_.size(); }
  // The process is dead, though its objects are not yet: what it sends from
  // here on was never sent.
  void Silence() { silent_ = true; }

 private:
  friend class SimNetwork;
  using Callback = std::function<void(transfer::TransportHandler*)>;

  SimTransport(SimNetwork* network, std::string process, std::string address,
               std::function<void()> wake);
  std::shared_ptr<SimNetwork::End> NewEnd();
  void Deliver(Callback callback);

  SimNetwork* network_;
  std::string process_;
  std::string address_;
  std::function<void()> wake_;
  bool silent_ = false;
  uint64_t next_link_ = 1;
  std::map<transfer::LinkId, std::shared_ptr<SimNetwork::End>> ends_;
  std::deque<Callback> inbox_;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_SIM_TRANSPORT_H_
