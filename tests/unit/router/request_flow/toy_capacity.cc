#include "tests/unit/router/request_flow/toy_capacity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace baton::router {
namespace {

constexpr size_t kMaxSequences = 64;
constexpr uint32_t kRetryMs = 20;

Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

ToyCapacity::ToyCapacity(Speed speed, uint64_t seed)
    : speed_(speed),
      random_(seed),
      start_(driver_.now().time_since_epoch()),
      p_(driver_.AddPrefill("p")),
      d_(driver_.AddDecode("d")) {
  v1::WorkerHello hello = CoreDriver::Hello("p", v1::WORKER_ROLE_PREFILL);
  hello.set_step_token_budget(speed_.step_tokens);
  driver_.Up(p_, hello);
  GrantCredit();
}

double ToyCapacity::AnsweredPerSecond(MonotonicTime from,
                                      MonotonicTime to) const {
  const auto answered =
      std::count_if(ends_.begin(), ends_.end(), [&](const ToyEnd& end) {
        return end.status.ok() && end.ended >= from && end.ended < to;
      });
  return static_cast<double>(answered) / Seconds(to - from);
}

Duration ToyCapacity::Noisy(Duration mean) {
  const auto slow = slow_.upper_bound(now());
  const double factor = slow == slow_.begin() ? 1 : std::prev(slow)->second;
  std::uniform_real_distribution<double> noise(0.6, 1.4);
  return FromSeconds(Seconds(mean) * factor * noise(random_));
}

void ToyCapacity::RunUntil(MonotonicTime end) {
  while (true) {
    const MonotonicTime next =
        std::min({prefill_end_, decode_end_, NextAsk(), end});
    driver_.Advance(std::max(next, now()) - now());
    ReadLog();
    if (next >= end) return;
    if (prefill_end_ <= now()) EndPrefillStep();
    if (decode_end_ <= now()) EndDecodeStep();
    AskDue();
    ReadLog();
    StartSteps();
  }
}

MonotonicTime ToyCapacity::NextAsk() const {
  MonotonicTime next = kNever;
  for (const Load& load : loads_) {
    MonotonicTime at = std::max(load.next, load.load.from);
    if (load.load.per_s == 0) {
      if (load.open + static_cast<int>(load.pauses.size()) ==
          load.load.in_flight) {
        at = load.pauses.empty() ? kNever : load.pauses.front();
      }
    }
    if (at < load.load.to) next = std::min(next, at);
  }
  return next;
}

void ToyCapacity::AskDue() {
  for (size_t i = 0; i < loads_.size(); ++i) {
    Load& load = loads_[i];
    if (now() < load.load.from || now() >= load.load.to) continue;
    load.next = std::max(load.next, load.load.from);
    while (load.load.per_s > 0 && load.next <= now()) {
      load.next += FromSeconds(1 / load.load.per_s);
      Ask(i);
    }
    std::erase_if(load.pauses, [&](MonotonicTime at) { return at <= now(); });
    while (load.open + static_cast<int>(load.pauses.size()) <
           load.load.in_flight) {
      Ask(i);
    }
  }
}

void ToyCapacity::Ask(size_t index) {
  Load& load = loads_[index];
  const MonotonicTime asked = now();
  ++load.open;
  const absl::Status early = driver_.core().RefuseEarly(
      {.tenant = load.load.tenant,
       .priority = 1,
       .deadline = driver_.now() + load.load.deadline,
       .prompt_tokens = static_cast<uint64_t>(load.load.prompt_tokens),
       .max_tokens = load.load.max_tokens},
      driver_.now());
  const RequestId id =
      driver_.Ask(load.load.prompt_tokens, 1, load.load.max_tokens,
                  load.load.deadline, 1, load.load.tenant);
  EXPECT_EQ(early.ok(), !driver_.answer(id).status.has_value())
      << "all that is refused can be refused early, and nothing else";
  requests_[id.value()] = {{load.load.tenant, asked, asked, kNever, {}}, index};
  ReadLog();
}

void ToyCapacity::ReadLog() {
  for (auto log = driver_.TakeLog(); !log.empty(); log = driver_.TakeLog()) {
    for (const std::string& line : log) OnLine(line);
  }
}

void ToyCapacity::OnLine(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  uint64_t number = 0, attempt = 0;
  char mark = 0;
  words >> verb >> number >> mark >> attempt;
  if (verb == "reserve") {
    if (jobs_.size() >= kMaxSequences) {
      driver_.Refused(d_, AttemptId(attempt), kRetryMs);
      return;
    }
    const v1::SequenceSpec& spec = driver_.SpecOf(AttemptId(attempt));
    jobs_[attempt] = {spec.prompt_token_ids_size(), 0, spec.max_tokens(),
                      spec.max_tokens()};
    driver_.Reserved(d_, AttemptId(attempt));
  } else if (verb == "start") {
    planner_.Add(JobId(attempt),
                 static_cast<uint32_t>(jobs_.at(attempt).prompt_tokens));
  } else if (verb == "release" || verb == "cancel") {
    Forget(attempt);
  } else if (verb == "emit") {
    Request& request = requests_.at(number);
    request.end.first_token = std::min(request.end.first_token, now());
  } else if (verb == "finish") {
    Request& request = requests_.at(number);
    Load& load = loads_[request.load];
    request.end.ended = now();
    request.end.status = *driver_.answer(RequestId(number)).status;
    ends_.push_back(request.end);
    requests_.erase(number);
    --load.open;
    if (load.load.in_flight > 0) {
      load.pauses.push_back(now() + load.load.pause);
    }
  }
}

void ToyCapacity::Forget(uint64_t attempt) {
  const auto job = jobs_.find(attempt);
  if (job == jobs_.end()) return;
  planner_.Remove(JobId(attempt));
  Return(
      job->second.prompt_tokens,
      static_cast<uint64_t>(job->second.prompt_tokens - job->second.computed));
  jobs_.erase(job);
  GrantCredit();
}

void ToyCapacity::StartSteps() {
  if (prefill_end_ == kNever && !planner_.empty()) {
    prefill_step_ = planner_.Next(speed_.step_tokens);
    uint32_t tokens = 0;
    for (const auto& chunk : prefill_step_) tokens += chunk.count;
    prefill_end_ =
        now() + Noisy(FromSeconds(tokens / speed_.prefill_tokens_per_s));
  }
  if (decode_end_ != kNever) return;
  for (const auto& [attempt, job] : jobs_) {
    if (job.decoding) decode_step_.insert(attempt);
  }
  if (decode_step_.empty()) return;
  decode_end_ = now() + Noisy(speed_.decode_step +
                              decode_step_.size() * speed_.decode_row);
}

void ToyCapacity::EndPrefillStep() {
  prefill_end_ = kNever;
  for (const auto& chunk : std::exchange(prefill_step_, {})) {
    const auto it = jobs_.find(chunk.job.value());
    if (it == jobs_.end()) continue;
    it->second.computed += static_cast<int>(chunk.count);
    Return(it->second.prompt_tokens, chunk.count);
    if (!chunk.last) continue;
    it->second.decoding = true;
    --it->second.left;
    const AttemptId attempt(chunk.job.value());
    driver_.FirstTokens(p_, attempt, {{0, 0, 7}});
    driver_.Landed(d_, attempt);
    driver_.HandedOver(p_, attempt);
  }
  GrantCredit();
}

void ToyCapacity::EndDecodeStep() {
  decode_end_ = kNever;
  for (uint64_t attempt : std::exchange(decode_step_, {})) {
    const auto it = jobs_.find(attempt);
    if (it == jobs_.end() || --it->second.left > 0) continue;
    const uint32_t last = it->second.tokens - 1;
    jobs_.erase(it);
    std::vector<DeltaSpec> tokens;
    for (uint32_t i = 1; i <= last; ++i) tokens.push_back({0, i, 7, i == last});
    driver_.Tokens(d_, AttemptId(attempt), std::move(tokens));
    driver_.Done(d_, AttemptId(attempt));
  }
  v1::WorkerLoad load;
  load.set_granted_prefill_tokens(1 << 20);
  driver_.Load(d_, load);
}

void ToyCapacity::Return(int prompt_tokens, uint64_t tokens) {
  (prompt_tokens <= speed_.step_tokens ? returned_short_ : returned_) += tokens;
}

void ToyCapacity::GrantCredit() {
  v1::WorkerLoad load;
  load.set_granted_prefill_tokens(returned_ + 2 * speed_.step_tokens);
  load.set_granted_short_prefill_tokens(returned_short_ +
                                        2 * speed_.step_tokens);
  driver_.Load(p_, std::move(load));
}

}  // namespace baton::router
