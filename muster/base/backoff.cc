#include "muster/base/backoff.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace muster::base {
namespace {

constexpr double kShortestUnitMs = 80;
constexpr double kLongestUnitMs = 120;

// 2^40 × 80 ms is 2,800 years: more than any maximum, and far from the end of a double or a
// Duration. The original computed (int)(2^idle × 100), which turns negative after 25 idle looks
// (D1).
constexpr int kMaxExponent = 40;

}  // namespace

IdleBackoff::IdleBackoff(IdleBackoffOptions options, UniformSource uniform)
    : options_(options), uniform_(std::move(uniform)) {}

absl::Duration IdleBackoff::Interval(int idle_count) {
  const int exponent = std::clamp(idle_count, 0, kMaxExponent);
  const double unit_ms = kShortestUnitMs + uniform_() * (kLongestUnitMs - kShortestUnitMs);
  const absl::Duration delta = absl::Milliseconds((std::ldexp(1.0, exponent) - 1) * unit_ms);
  return std::clamp(options_.minimum + delta, absl::ZeroDuration(),
                    std::max(options_.maximum, absl::ZeroDuration()));
}

}  // namespace muster::base
