#include "kv_transfer/transfer_thread.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/telemetry/log.h"
#include "kv_transfer/breach_report.h"
#include "kv_transfer/ticket.h"

namespace baton::transfer {
namespace {

constexpr Duration kLongestWait = std::chrono::seconds(1);
constexpr Duration kCloseTime = std::chrono::seconds(5);

}  // namespace

struct TransferThread::Impl {
  using Command = std::function<void(MonotonicTime now)>;

  Impl(std::unique_ptr<Transport> transport_in, TransferOptions options_in,
       OnEvents on_events_in)
      : transport(std::move(transport_in)),
        options(std::move(options_in)),
        name(transport->name()),
        address(transport->address()),
        on_events(std::move(on_events_in)),
        core(transport.get(), options),
        thread([this] { Run(); }) {}

  struct Adoption {
    Ticket ticket;
    LandingSpec spec;
  };

  ~Impl() {
    stopping.store(true);
    transport->Wake();
    thread.join();
    transport.reset();
  }

  void Post(Command command) {
    {
      std::lock_guard lock(mutex);
      commands.push_back(std::move(command));
    }
    transport->Wake();
  }

  void Run() {
    pthread_setname_np(pthread_self(), "kv_transfer");
    core.OnUnknownLanding([this] { Adopt(); });
    while (!stopping.load()) {
      const bool commanded = RunCommands();
      const bool polled = core.Poll(MonotonicNow(), &events);
      HandOut();
      if (!commanded && !polled) Sleep();
    }
    CloseLinks();
  }

  // A holder may be faster than this thread: a landing must be known before
  // the BEGIN that its ticket made possible is judged.
  bool Adopt() {
    std::vector<Adoption> batch;
    {
      std::lock_guard lock(mutex);
      batch.swap(adoptions);
    }
    for (Adoption& adoption : batch) {
      core.AdoptLanding(adoption.ticket, std::move(adoption.spec),
                        MonotonicNow());
    }
    return !batch.empty();
  }

  bool RunCommands() {
    std::vector<Command> batch;
    {
      std::lock_guard lock(mutex);
      batch.swap(commands);
    }
    // After the swap: a CancelLanding in the batch finds what it cancels.
    const bool adopted = Adopt();
    for (Command& command : batch) command(MonotonicNow());
    return adopted || !batch.empty();
  }

  void HandOut() {
    {
      std::lock_guard lock(mutex);
      counters = core.counters();
    }
    if (const auto line = breaches.Next(core.counters(), MonotonicNow())) {
      log::Warn("{}", *line);
    }
    if (events.empty()) return;
    open_landings.fetch_sub(
        std::ranges::count_if(events, [](const TransferEvent& event) {
          return std::holds_alternative<LandingVerified>(event) ||
                 std::holds_alternative<LandingClosed>(event);
        }));
    on_events(std::exchange(events, {}));
  }

  void Sleep() {
    const MonotonicTime next = core.NextDeadline();
    const MonotonicTime now = MonotonicNow();
    if (next > now) transport->Wait(std::min(kLongestWait, next - now));
  }

  void CloseLinks() {
    core.CloseLinks();
    const MonotonicTime give_up = MonotonicNow() + kCloseTime;
    while (core.open_links() > 0 && MonotonicNow() < give_up) {
      if (!core.Poll(MonotonicNow(), &events)) {
        transport->Wait(std::chrono::milliseconds(1));
      }
    }
  }

  // A call found its arguments wrong after it had returned. Unknown and
  // finished transfers are no news: their own event is out already.
  void Report(TransferId id, const absl::Status& status, MonotonicTime now) {
    if (status.ok() || absl::IsNotFound(status)) return;
    events.push_back(TransferFailed{id, status});
    core.Abort(id, now);
  }

  std::unique_ptr<Transport> transport;
  const TransferOptions options;
  const std::string name;
  const std::string address;
  const OnEvents on_events;
  std::atomic<size_t> open_landings{0};
  std::atomic<uint64_t> next_transfer{1};
  std::atomic<bool> stopping{false};

  mutable std::mutex mutex;
  std::vector<Command> commands;    // mutex
  std::vector<Adoption> adoptions;  // mutex
  TransferCore::Counters counters;  // mutex

  TransferCore core;                  // on the thread only
  std::vector<TransferEvent> events;  // on the thread only
  BreachReport breaches;              // on the thread only
  std::thread thread;
};

TransferThread::TransferThread(std::unique_ptr<Transport> transport,
                               TransferOptions options, OnEvents on_events)
    : impl_(std::make_unique<Impl>(std::move(transport), std::move(options),
                                   std::move(on_events))) {}

TransferThread::~TransferThread() = default;

absl::StatusOr<Ticket> TransferThread::OpenLanding(LandingSpec spec) {
  Impl* impl = impl_.get();
  BATON_RETURN_IF_ERROR(CheckLandingSpec(spec, impl->options));
  if (impl->open_landings.fetch_add(1) >= impl->options.max_landings) {
    impl->open_landings.fetch_sub(1);
    return absl::ResourceExhaustedError(
        StrCat("landings: all ", impl->options.max_landings, " are open"));
  }
  Ticket ticket = IssueTicket(spec, impl->options, impl->name, impl->address);
  {
    std::lock_guard lock(impl->mutex);
    impl->adoptions.push_back({ticket, std::move(spec)});
  }
  impl->transport->Wake();
  return ticket;
}

void TransferThread::CancelLanding(LandingId landing) {
  Impl* impl = impl_.get();
  impl->Post([impl, landing](MonotonicTime now) {
    impl->core.CancelLanding(landing, now);
  });
}

absl::StatusOr<TransferId> TransferThread::OpenTransfer(
    const Ticket& ticket, MonotonicTime deadline) {
  Impl* impl = impl_.get();
  BATON_RETURN_IF_ERROR(
      CheckTicket(ticket, impl->options, impl->name).status());
  const TransferId id(impl->next_transfer.fetch_add(1));
  impl->Post([impl, id, ticket, deadline](MonotonicTime now) {
    const absl::Status status =
        impl->core.StartTransfer(id, ticket, deadline, now);
    if (status.ok()) return;
    impl->events.push_back(TransferFailed{id, status});
    impl->events.push_back(TransferClosed{id});
  });
  return id;
}

void TransferThread::PushBlock(TransferId transfer, uint32_t ordinal,
                               absl::Span<const std::byte> memory,
                               uint32_t written_tokens) {
  Impl* impl = impl_.get();
  impl->Post([=](MonotonicTime now) {
    impl->Report(
        transfer,
        impl->core.PushBlock(transfer, ordinal, memory, written_tokens), now);
  });
}

void TransferThread::Seal(TransferId transfer, SealContents seal) {
  Impl* impl = impl_.get();
  impl->Post([impl, transfer, seal = std::move(seal)](MonotonicTime now) {
    impl->Report(transfer, impl->core.Seal(transfer, seal), now);
  });
}

void TransferThread::Abort(TransferId transfer) {
  Impl* impl = impl_.get();
  impl->Post([=](MonotonicTime now) { impl->core.Abort(transfer, now); });
}

TransferCore::Counters TransferThread::counters() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->counters;
}

std::string_view TransferThread::transport_name() const { return impl_->name; }

}  // namespace baton::transfer
