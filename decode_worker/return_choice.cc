#include "decode_worker/return_choice.h"

#include <algorithm>
#include <cmath>

namespace baton::decode {
namespace {

// Hoped for, so that a push is tried.
constexpr double kLatency = 1e-3;
constexpr double kByte = 0.5e-9;  // 2 GB/s
constexpr double kHalfLife = 30;  // seconds, of what was learnt

constexpr double kRate = 0.5;
constexpr double kLargestError = 2;  // of a logarithm: a factor of 7.4
constexpr double kFarthest = 7;      // a factor of 1,100 from the hope
constexpr double kMostPenalty = 600;
constexpr double kForgiven = 0.25;  // what a success leaves of the penalty
constexpr double kPatience = 4;

}  // namespace

double ReturnChoice::Left(MonotonicTime since, MonotonicTime now) {
  return std::exp2(-Seconds(std::max(now - since, Duration::zero())) /
                   kHalfLife);
}

ReturnChoice::Costs ReturnChoice::CostsAt(MonotonicTime now) const {
  const double left = Left(learnt_, now);
  return {kLatency * std::exp(left * latency_), kByte * std::exp(left * byte_)};
}

double ReturnChoice::PenaltyAt(MonotonicTime now) const {
  return penalty_ * Left(failed_, now);
}

double ReturnChoice::PushSeconds(uint64_t bytes, MonotonicTime now) const {
  const Costs costs = CostsAt(now);
  return costs.latency + costs.byte * static_cast<double>(bytes);
}

Duration ReturnChoice::Patience(uint64_t bytes, MonotonicTime now) const {
  const double wanted =
      std::min(kPatience * PushSeconds(bytes, now), Seconds(longest_));
  const auto patience = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(wanted));
  return std::min(std::max(patience, kLeastPatience), longest_);
}

bool ReturnChoice::Pushes(uint64_t bytes,
                          std::optional<double> recompute_seconds,
                          MonotonicTime now) const {
  if (mode_ != PreemptedReturn::kAuto) return mode_ == PreemptedReturn::kPush;
  if (!recompute_seconds.has_value()) return true;
  const double push = PushSeconds(bytes, now);
  return push <= Seconds(longest_) &&
         push + PenaltyAt(now) < *recompute_seconds;
}

void ReturnChoice::Pushed(uint64_t bytes, Duration took, MonotonicTime now) {
  const double seconds = Seconds(took);
  if (!(seconds > 0)) return;
  const double predicted = PushSeconds(bytes, now);
  const double in_latency = CostsAt(now).latency / predicted;
  const double left = Left(learnt_, now);
  const double error =
      std::clamp(std::log(seconds / predicted), -kLargestError, kLargestError);
  auto move = [&](double* cost, double part) {
    *cost =
        std::clamp(left * *cost + kRate * error * part, -kFarthest, kFarthest);
  };
  move(&latency_, in_latency);
  move(&byte_, 1 - in_latency);
  learnt_ = now;
  penalty_ = kForgiven * PenaltyAt(now);
  failed_ = now;
}

void ReturnChoice::Failed(Duration lost, MonotonicTime now) {
  Punish(2 * PenaltyAt(now), lost, now);
}

void ReturnChoice::Refused(Duration lost, MonotonicTime now) {
  Punish(PenaltyAt(now), lost, now);
}

void ReturnChoice::Punish(double penalty, Duration lost, MonotonicTime now) {
  penalty_ = std::min(penalty + std::max(Seconds(lost), 0.0), kMostPenalty);
  failed_ = now;
}

}  // namespace baton::decode
