// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/options.h"

#include "absl/strings/str_cat.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"

namespace muster::scaling::replay {
namespace {

// The limits of rate_factor: smaller factors would need years of simulated time, and no measurement
// is wrong by a larger one.
constexpr double kLeastRateFactor = 0.001;
constexpr double kMostRateFactor = 1000;
constexpr double kMostSigma = 3;

absl::Status Require(bool holds, absl::string_view what) {
  return holds ? absl::OkStatus() : absl::InvalidArgumentError(what);
}

absl::Status CheckTimes(const SimOptions& options) {
  MUSTER_RETURN_IF_ERROR(Require(
      options.service_time >= absl::Microseconds(1) && options.service_time <= kMaxServiceTime,
      absl::StrCat("the service time must lie between 1us and ",
                   base::DurationToString(kMaxServiceTime))));
  MUSTER_RETURN_IF_ERROR(Require(
      options.sla > absl::ZeroDuration() && options.sla <= kMaxSpan,
      absl::StrCat("the sla must be above 0 and at most ", base::DurationToString(kMaxSpan))));
  return Require(
      options.cold_start >= absl::ZeroDuration() && options.cold_start <= kMaxServiceTime,
      absl::StrCat("the cold start must be at most ", base::DurationToString(kMaxServiceTime)));
}

absl::Status CheckSigma(double sigma) {
  return Require(sigma >= 0 && sigma <= kMostSigma,
                 absl::StrCat("a sigma must lie between 0 and ", kMostSigma));
}

absl::Status CheckFaults(const Faults& faults) {
  MUSTER_RETURN_IF_ERROR(
      Require(faults.metrics_delay >= absl::ZeroDuration() && faults.metrics_delay <= kMaxSpan,
              "the delay of the metrics is too long"));
  MUSTER_RETURN_IF_ERROR(Require(faults.lost_triggers >= 0 && faults.lost_triggers <= 1,
                                 "the share of lost triggers must lie between 0 and 1"));
  MUSTER_RETURN_IF_ERROR(
      Require(faults.rate_factor >= kLeastRateFactor && faults.rate_factor <= kMostRateFactor,
              absl::StrCat("the rate factor must lie between ", kLeastRateFactor, " and ",
                           kMostRateFactor)));
  for (const Outage& outage : faults.outages) {
    MUSTER_RETURN_IF_ERROR(Require(outage.from >= absl::ZeroDuration() &&
                                       outage.length >= absl::ZeroDuration() &&
                                       outage.from <= kMaxSpan && outage.length <= kMaxSpan,
                                   "an outage is too late or too long"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Check(const SimOptions& options) {
  MUSTER_RETURN_IF_ERROR(CheckTimes(options));
  MUSTER_RETURN_IF_ERROR(CheckSigma(options.service_sigma));
  MUSTER_RETURN_IF_ERROR(CheckSigma(options.cold_start_sigma));
  MUSTER_RETURN_IF_ERROR(Require(options.tasks >= 1 && options.tasks <= kMaxTasks,
                                 absl::StrCat("tasks must lie between 1 and ", kMaxTasks)));
  MUSTER_RETURN_IF_ERROR(
      Require(options.min >= 0 && options.max >= 1 && options.max <= kMaxReplicas,
              absl::StrCat("min must be at least 0, and max lie between 1 and ", kMaxReplicas)));
  MUSTER_RETURN_IF_ERROR(Require(options.min <= options.max, "min is larger than max"));
  return CheckFaults(options.faults);
}

}  // namespace muster::scaling::replay
