#include "tests/support/random_cancels.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <thread>
#include <vector>

namespace baton::testing {
namespace {

grpc::StatusCode CancelAfter(v1::Generation::Stub& stub,
                             const v1::GenerateRequest& request,
                             Duration after) {
  grpc::ClientContext context;
  const auto reader = stub.Generate(&context, request);
  std::thread killer([&] {
    std::this_thread::sleep_for(after);
    context.TryCancel();
  });
  v1::GenerateEvent event;
  while (reader->Read(&event)) {
  }
  const grpc::Status status = reader->Finish();
  killer.join();
  return status.error_code();
}

}  // namespace

CancelledEnds CancelAtRandom(v1::Generation::Stub& stub,
                             const CancelledLoad& load) {
  std::atomic<int> next = 0, cancelled = 0, finished = 0, other = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < load.clients; ++c) {
    clients.emplace_back([&, c] {
      std::mt19937 random(static_cast<uint32_t>(c));
      while (next.fetch_add(1) < load.requests) {
        const v1::GenerateRequest request = load.make_request(&random);
        const Duration after(static_cast<Duration::rep>(random()) %
                             load.longest.count());
        switch (CancelAfter(stub, request, after)) {
          case grpc::StatusCode::OK:
            ++finished;
            break;
          case grpc::StatusCode::CANCELLED:
            ++cancelled;
            break;
          default:
            ++other;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  return {cancelled, finished, other};
}

}  // namespace baton::testing
