#include "tests/load/load_client.h"

#include <algorithm>
#include <utility>

#include "common/rpc/status.h"

namespace baton::testing {

namespace {

// How long a new pace may take to be noticed.
constexpr Duration kLook = std::chrono::milliseconds(20);

std::chrono::system_clock::time_point SystemTime(MonotonicTime when) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::microseconds>(when -
                                                               MonotonicNow());
}

}  // namespace

std::vector<double> Sample::gaps_ms() const {
  std::vector<double> gaps;
  for (size_t i = 1; i < outputs.size(); ++i) {
    gaps.push_back(Milliseconds(outputs[i] - outputs[i - 1]));
  }
  return gaps;
}

// Lives until it has seen the ends of all that it started.
class LoadClient::Call {
 public:
  Call(LoadClient* client, const v1::GenerateRequest& request,
       const std::string& api_token, Duration deadline) {
    context_.AddMetadata("authorization", "Bearer " + api_token);
    context_.set_deadline(SystemTime(MonotonicNow() + deadline));
    sample_.start = MonotonicNow();
    reader_ = client->stub_->PrepareAsyncGenerate(&context_, request,
                                                  &client->queue_);
    reader_->StartCall(&started_);
    reader_->Read(&event_, &read_);
  }

  struct Tag {
    Call* call;
    // True: nothing of the call is outstanding.
    bool (Call::*on_event)(bool ok);
  };

  bool OnStarted(bool) { return --outstanding_ == 0; }

  bool OnRead(bool ok) {
    if (!ok) {
      reader_->Finish(&status_, &finished_);
      return false;
    }
    if (event_.token_ids_size() > 0) {
      sample_.outputs.push_back(MonotonicNow());
      sample_.first_token = sample_.outputs.front();
    }
    if (event_.has_served()) sample_.served = event_.served();
    reader_->Read(&event_, &read_);
    return false;
  }

  bool OnFinished(bool) {
    sample_.end = MonotonicNow();
    const absl::Status result = FromGrpcStatus(status_);
    sample_.code = result.code();
    sample_.message = std::string(result.message());
    sample_.retry_info = RetryDelay(result).has_value();
    return --outstanding_ == 0;
  }

  Sample TakeSample() { return std::move(sample_); }

 private:
  Tag started_{this, &Call::OnStarted};
  Tag read_{this, &Call::OnRead};
  Tag finished_{this, &Call::OnFinished};
  int outstanding_ = 2;  // the start, and the end that follows the last read
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::GenerateEvent>> reader_;
  v1::GenerateEvent event_;
  grpc::Status status_;
  Sample sample_;
};

LoadClient::LoadClient(const std::string& address)
    : stub_(v1::Generation::NewStub(
          grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))),
      thread_([this] { Run(); }) {}

LoadClient::~LoadClient() {
  StopPacing();
  WaitUntilOpen(0);
  queue_.Shutdown();
  thread_.join();
}

void LoadClient::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (true) {
    switch (queue_.AsyncNext(&tag, &ok, SystemTime(SendDue()))) {
      case grpc::CompletionQueue::SHUTDOWN:
        return;
      case grpc::CompletionQueue::TIMEOUT:
        continue;
      case grpc::CompletionQueue::GOT_EVENT:
        break;
    }
    const Call::Tag& event = *static_cast<Call::Tag*>(tag);
    Call* const call = event.call;
    if (!(call->*event.on_event)(ok)) continue;
    Sample sample = call->TakeSample();
    delete call;
    Ended(std::move(sample));
  }
}

MonotonicTime LoadClient::SendDue() {
  while (true) {
    const MonotonicTime now = MonotonicNow();
    std::unique_lock lock(mutex_);
    if (!pacing_.has_value()) return now + kLook;
    if (now < next_paced_) return next_paced_;
    next_paced_ += pacing_->pause;
    ++paced_;
    ++open_;
    new Call(this, pacing_->make(), pacing_->api_token, pacing_->deadline);
  }
}

void LoadClient::Send(const v1::GenerateRequest& request,
                      const std::string& api_token, Duration deadline) {
  {
    std::lock_guard lock(mutex_);
    ++open_;
  }
  new Call(this, request, api_token, deadline);
}

void LoadClient::StartPacing(Pacing pacing) {
  std::lock_guard lock(mutex_);
  pacing_ = std::move(pacing);
  next_paced_ = MonotonicNow();
  paced_ = 0;
}

uint64_t LoadClient::StopPacing() {
  std::lock_guard lock(mutex_);
  pacing_.reset();
  return paced_;
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
