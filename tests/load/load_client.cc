#include "tests/load/load_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "common/rpc/status.h"

namespace baton::testing {

// Deletes itself.
class LoadClient::Call final
    : public grpc::ClientReadReactor<v1::GenerateEvent> {
 public:
  Call(LoadClient* client, const v1::GenerateRequest& request,
       const std::string& api_token, Duration deadline)
      : client_(client), request_(request) {
    context_.AddMetadata("authorization", "Bearer " + api_token);
    context_.set_deadline(
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::microseconds>(deadline));
    sample_.start = MonotonicNow();
    client_->stub_->async()->Generate(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (sample_.first_token == kNever && event_.token_ids_size() > 0) {
      sample_.first_token = MonotonicNow();
    }
    if (event_.has_served()) sample_.served = event_.served();
    StartRead(&event_);
  }

  void OnDone(const grpc::Status& status) override {
    sample_.end = MonotonicNow();
    const absl::Status result = FromGrpcStatus(status);
    sample_.code = result.code();
    sample_.message = std::string(result.message());
    sample_.retry_info = RetryDelay(result).has_value();
    LoadClient* const client = client_;
    Sample sample = std::move(sample_);
    // First: the channel must not end here, on a thread that it would join.
    delete this;
    client->Ended(std::move(sample));
  }

 private:
  LoadClient* const client_;
  const v1::GenerateRequest request_;
  grpc::ClientContext context_;
  v1::GenerateEvent event_;
  Sample sample_;
};

LoadClient::LoadClient(const std::string& address)
    : stub_(v1::Generation::NewStub(
          grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {}

LoadClient::~LoadClient() { WaitUntilOpen(0); }

void LoadClient::Send(const v1::GenerateRequest& request,
                      const std::string& api_token, Duration deadline) {
  {
    std::lock_guard lock(mutex_);
    ++open_;
  }
  new Call(this, request, api_token, deadline);
}

void LoadClient::WaitUntilOpen(size_t most) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return open_ <= most; });
}

std::vector<Sample> LoadClient::Take() {
  std::lock_guard lock(mutex_);
  return std::exchange(ended_, {});
}

void LoadClient::Ended(Sample sample) {
  std::lock_guard lock(mutex_);
  ended_.push_back(std::move(sample));
  --open_;
  changed_.notify_all();
}

double Quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const auto last = static_cast<double>(values.size() - 1);
  const auto at =
      values.begin() + static_cast<ptrdiff_t>(std::min(
                           part * static_cast<double>(values.size()), last));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace baton::testing
