#include "router/client/cli/bench_runner.h"

#include <algorithm>
#include <thread>

#include "common/base/strings.h"
#include "router/client/cli/bench_load.h"
#include "router/client/cli/command.h"

namespace baton::cli {

size_t OutputTokens(const BenchLoad& load, size_t index) {
  return load.most_output_tokens == 0
             ? load.output_tokens
             : GeometricLength(load.output_tokens, load.most_output_tokens,
                               load.seed, index);
}

namespace {

v1::GenerateRequest MakeRequest(const BenchLoad& load, size_t index) {
  v1::GenerateRequest request;
  for (const uint32_t id : RandomPrompt(load.input_tokens, load.vocabulary_size,
                                        load.seed, index)) {
    request.mutable_token_ids()->add_ids(id);
  }
  request.set_max_tokens(static_cast<int32_t>(OutputTokens(load, index)));
  request.set_ignore_eos(true);
  request.mutable_sampling()->set_temperature(load.temperature);
  request.mutable_sampling()->set_seed(load.seed + index);
  return request;
}

RequestRecord Record(GenerateStream* stream, MonotonicTime sent) {
  RequestRecord record;
  MonotonicTime previous = sent;
  while (const auto event = stream->Next()) {
    const MonotonicTime now = MonotonicNow();
    if (!event->token_ids().empty()) {
      if (record.output_tokens == 0) {
        record.first_token = now - sent;
      } else {
        record.token_gaps.push_back(now - previous);
      }
      previous = now;
      record.output_tokens += static_cast<size_t>(event->token_ids_size());
    }
    if (event->has_usage())
      record.input_tokens = event->usage().prompt_tokens();
    if (event->has_served()) {
      record.queue_ms = event->served().queue_ms();
      record.prefill_ms = event->served().prefill_ms();
      record.transfer_ms = event->served().transfer_ms();
      record.decode_ms = event->served().decode_ms();
    }
  }
  record.total = MonotonicNow() - sent;
  return record;
}

}  // namespace

BenchRunner::BenchRunner(Client* client, const BenchLoad& load)
    : client_(client),
      load_(load),
      arrivals_(load.request_rate ? PoissonArrivals(*load.request_rate,
                                                    load.num_prompts, load.seed)
                                  : std::vector<Duration>()),
      records_(load.num_prompts) {}

std::vector<RequestRecord> BenchRunner::Run() {
  start_ = MonotonicNow();
  std::vector<std::thread> senders;
  const size_t count = std::min(load_.max_concurrency, load_.num_prompts);
  for (size_t i = 0; i < count; ++i) {
    senders.emplace_back([this] { SendRequests(); });
  }
  for (std::thread& sender : senders) sender.join();
  return std::move(records_);
}

bool BenchRunner::WaitForArrival(size_t index) {
  std::unique_lock lock(mutex_);
  if (!arrivals_.empty()) {
    wake_.wait_until(lock, start_ + arrivals_[index],
                     [this] { return stopped_; });
  }
  return !stopped_;
}

void BenchRunner::SendRequests() {
  for (size_t index = next_++; index < load_.num_prompts; index = next_++) {
    if (!WaitForArrival(index)) {
      records_[index].error = "not sent";
      continue;
    }
    records_[index] = RunOne(index);
    ++done_;
  }
}

RequestRecord BenchRunner::RunOne(size_t index) {
  const v1::GenerateRequest request = MakeRequest(load_, index);
  const MonotonicTime sent = MonotonicNow();
  const auto stream = client_->Generate(request);
  {
    std::lock_guard lock(mutex_);
    running_.push_back(stream.get());
    if (stopped_) stream->Cancel();
  }
  RequestRecord record = Record(stream.get(), sent);
  const absl::Status status = stream->Finish();
  {
    std::lock_guard lock(mutex_);
    running_.erase(std::find(running_.begin(), running_.end(), stream.get()));
  }
  if (!status.ok()) {
    record.error = Advice(status, client_->address());
  } else if (const size_t asked = OutputTokens(load_, index);
             record.output_tokens != asked) {
    record.error = StrCat("asked for ", asked, " output tokens, got ",
                          record.output_tokens);
  }
  return record;
}

void BenchRunner::Stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  wake_.notify_all();
  for (GenerateStream* stream : running_) stream->Cancel();
}

}  // namespace baton::cli
