#ifndef BATON_KV_TRANSFER_UCX_UCX_ENGINE_H_
#define BATON_KV_TRANSFER_UCX_UCX_ENGINE_H_

#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kv_transfer/transport.h"
#include "kv_transfer/ucx/ucx_link.h"
#include "kv_transfer/ucx/ucx_worker_set.h"

namespace baton::transfer {

// The transport of MakeUcxTransport.
//
// A link is a pair of endpoints that UCX's connection manager has introduced to
// each other, over TCP whatever carries the data, so that both sides learn at
// once when the other closes or dies, on shared memory too. Messages are
// numbered, because UCX promises no order between its eager and rendezvous
// protocols. A link that UCX does not close in time is closed with its worker.
class UcxEngine final : public Transport {
 public:
  UcxEngine() = default;
  // Closes what is open and waits for UCX, a bounded time.
  ~UcxEngine() override;
  absl::Status Start(const UcxOptions& options);

  std::string_view name() const override { return "ucx"; }
  std::string address() const override { return address_; }
  absl::StatusOr<LinkId> Connect(std::string_view address) override;
  absl::Status Send(LinkId link, SendId send,
                    absl::Span<const std::byte> header,
                    absl::Span<const std::byte> payload) override;
  void Close(LinkId link) override;
  bool Progress(TransportHandler* handler) override;
  void Wait(Duration timeout) override;
  void Wake() override { workers_->Wake(); }

 private:
  struct Sent {
    LinkId link;
    SendId send;
    absl::Status status;
  };
  // What UCX calls, from inside ucp_worker_progress only.
  static void OnConnectionRequest(ucp_conn_request_h request, void* self);
  static ucs_status_t OnActiveMessage(void* self, const void* header,
                                      size_t header_bytes, void* data,
                                      size_t length,
                                      const ucp_am_recv_param_t* param);
  static void OnSendDone(void* request, ucs_status_t status, void* send);
  static void OnReceiveDone(void* request, ucs_status_t status, size_t length,
                            void* receive);
  static void OnEndpointFailed(void* link, ucp_ep_h endpoint,
                               ucs_status_t status);

  // ucx_engine.cc: messages.
  // A list of one.
  static std::list<UcxSend> MakeSend(UcxLink* link, SendId send,
                                     absl::Span<const std::byte> header,
                                     absl::Span<const std::byte> payload);
  void Post(UcxLink* link, std::list<UcxSend> send);
  void Welcomed(UcxLink* link);
  void SendEnded(UcxSend* send, ucs_status_t status);
  ucs_status_t OnData(UcxLink* link, uint64_t sequence, std::string header,
                      void* data, size_t length, uint64_t flags);
  ucs_status_t Deliver(UcxLink* link, std::string header, void* data,
                       size_t length, bool rendezvous);
  bool StartReceive(UcxLink* link, std::string header,
                    absl::Span<std::byte> place, void* descriptor);
  void ReceiveEnded(UcxReceive* receive, ucs_status_t status);
  void DeliverEarly(UcxLink* link);
  bool ReportSent(TransportHandler* handler);

  // ucx_engine_links.cc: the life of a link.
  UcxLink* Add(UcxWorker* worker);
  UcxLink* Find(LinkId id);
  UcxLink* Find(ucp_ep_h endpoint);
  void MakeEndpoint(UcxLink* link, ucp_ep_params_t* params);
  void Accept(ucp_conn_request_h request);
  void End(UcxLink* link, const absl::Status& why);
  void EndWorker(UcxWorker* worker);
  bool Closed(UcxLink* link);
  bool RunClosing(TransportHandler* handler);

  std::unique_ptr<UcxWorkerSet> workers_;
  std::string address_;
  std::map<LinkId, UcxLink> links_;
  std::map<ucp_ep_h, LinkId> by_endpoint_;
  uint64_t next_link_ = 1;
  size_t closing_ = 0;
  bool called_back_ = false;

  TransportHandler* handler_ = nullptr;  // while in Progress
  std::vector<Sent> sent_;
  std::vector<ucp_conn_request_h> requests_;
  std::vector<std::pair<LinkId, absl::Status>> failed_;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_UCX_UCX_ENGINE_H_
