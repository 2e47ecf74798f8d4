// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/quote.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/scaling/policy/deadline_profile.h"
#include "muster/scaling/policy/explain.h"
#include "muster/scaling/policy/sizing.h"

namespace muster::scaling::policy {
namespace {

// Promises are rounded up to this step; a promise rounded down would not be kept.
constexpr absl::Duration kPromiseStep = absl::Milliseconds(1);

absl::Status CheckWork(const QuotedWork& work) {
  if (work.items < 1 || work.items > kMaxQuotedItems) {
    return absl::InvalidArgumentError(
        absl::StrCat("items: must be within 1 to ", kMaxQuotedItems, ", not ", work.items));
  }
  if (work.items_per_second.has_value() &&
      !(*work.items_per_second > 0 && std::isfinite(*work.items_per_second))) {
    return absl::InvalidArgumentError("items_per_second: must be above 0");
  }
  return absl::OkStatus();
}

bool IsStale(const Observation& seen, absl::Duration stale_after) {
  return std::any_of(seen.queues.begin(), seen.queues.end(), [&](const QueueReading& reading) {
    return seen.now - reading.at > stale_after;
  });
}

// The observation as it will be soon: replicas above the maximum are gone.
Observation WithinBounds(const QuotedWork& work, const Observation& seen,
                         absl::Duration stale_after) {
  Observation observation = seen;
  if (IsStale(seen, stale_after)) observation.queues.clear();
  if (work.items_per_second.has_value()) {
    observation.estimates.items_per_second = *work.items_per_second;
  }
  observation = Sane(observation);
  Fleet& fleet = observation.fleet;
  const int max = observation.bounds.max;
  fleet.ready = std::min(fleet.ready, max);
  const auto ready = static_cast<size_t>(fleet.ready);
  fleet.starting.resize(std::min(fleet.starting.size(), static_cast<size_t>(max) - ready));
  fleet.idle_since.resize(std::min(fleet.idle_since.size(), ready));
  return observation;
}

// The decision of a fresh policy on the waiting work and `items` more. The quoted promise may be
// longer than the waiting work's by `longer`; the waiting work keeps its own deadlines.
Decision Ask(const Observation& observation, const DeadlineOptions& options, absl::Duration longer,
             int64_t items) {
  Observation asked = observation;
  for (QueueReading& reading : asked.queues) {
    // The quoted work must be later than the readings, so that it counts in addition to them.
    reading.at = std::min(reading.at, asked.now - absl::Milliseconds(1));
    reading.oldest_age = std::max(absl::ZeroDuration(), reading.oldest_age + longer);
  }
  const std::unique_ptr<Policy> policy = MakeDeadlinePolicy(options).value();
  if (items > 0) policy->Announce({asked.now, items});
  return policy->Decide(asked);
}

Decision AskAboutTheRest(const Observation& observation, DeadlineOptions options) {
  options.patience = 0;
  return Check(options).ok() ? Ask(observation, options, absl::ZeroDuration(), 0) : Decision();
}

int64_t Waiting(const Observation& observation) {
  int64_t items = 0;
  for (const QueueReading& reading : observation.queues) {
    for (const int64_t part : {reading.ready, reading.in_flight}) {
      items = std::min(kMaxItems, items + std::clamp<int64_t>(part, 0, kMaxItems));
    }
  }
  return items;
}

// The outcome of all work with a number of replicas. All work forms one cohort, because the quoted
// work comes last and is done when everything is done.
class End {
 public:
  End(const Observation& observation, int64_t items, double items_per_second, absl::Duration sla)
      : cohorts_({{observation.now, items}}),
        supply_{observation.now,
                observation.fleet.ready,
                observation.fleet.starting,
                observation.fleet.parked,
                items_per_second,
                observation.estimates.cold_start,
                observation.estimates.release},
        promise_{sla, observation.estimates.service_time} {}

  Feasibility With(int replicas) const {
    const Backlog backlog{&cohorts_, static_cast<double>(cohorts_.front().items), 0};
    Feasibility verdict = Judge(backlog, supply_, promise_, replicas);
    // A fluid has no items, but a real item takes at least its service time.
    verdict.finish = std::max(verdict.finish, supply_.now + promise_.service_time);
    if (promise_.deadline < promise_.service_time) verdict.feasible = false, verdict.needs = 0;
    return verdict;
  }

  // With `most` replicas, the number that the bounds allow.
  std::optional<absl::Duration> ShortestPromise(int most) const {
    const absl::Duration fastest = With(most).finish - supply_.now;
    if (fastest == absl::InfiniteDuration()) return std::nullopt;
    // The policy does not size for shorter promises, unless the present replicas keep them.
    const absl::Duration sized = supply_.cold_start / 0.9;
    const absl::Duration as_it_is = With(supply_.committed()).finish - supply_.now;
    const absl::Duration shortest = std::max(fastest, std::min(sized, as_it_is));
    return std::max(kPromiseStep, absl::Ceil(shortest, kPromiseStep));
  }

 private:
  const std::deque<Cohort> cohorts_;
  const Supply supply_;
  const Promise promise_;
};

std::string Replicas(int number) {
  return absl::StrCat(number, number == 1 ? " replica" : " replicas");
}

std::string WhatHelps(const Quotation& quotation, bool throttled) {
  if (throttled) return "The queue throttles: more partitions would help, more replicas would not.";
  if (quotation.needs == 0) return "No number of replicas would do it.";
  return absl::StrCat("It needs ", Replicas(quotation.needs), ", and at most ", quotation.max,
                      quotation.max == 1 ? " is" : " are", " allowed.");
}

std::string ExplainQuotation(const Quotation& quotation, const Observation& observation) {
  const std::string by = quotation.replicas == quotation.replicas_now
                             ? absl::StrCat("by the ", Replicas(quotation.replicas), " there")
                             : absl::StrCat("by ", Replicas(quotation.replicas), " instead of ",
                                            quotation.replicas_now);
  std::string text =
      quotation.finish == absl::InfiniteFuture()
          ? "Never done: no replica may work on it."
          : absl::StrCat("Done in ", ShowDuration(quotation.finish - observation.now), " ", by);
  if (quotation.feasible) {
    const absl::Duration spare = quotation.deadline - quotation.finish;
    absl::StrAppend(&text, ", ", ShowDuration(std::max(absl::ZeroDuration(), spare)),
                    " before it is due.");
  } else {
    if (quotation.finish != absl::InfiniteFuture()) {
      absl::StrAppend(&text, ", ", ShowDuration(quotation.late_by), " late.");
    }
    const bool throttled = IsThrottled(observation.estimates) && quotation.replicas_now > 0;
    absl::StrAppend(&text, " ", WhatHelps(quotation, throttled));
    if (quotation.shortest_sla.has_value()) {
      absl::StrAppend(&text, " The shortest promise that could be kept is ",
                      ShowDuration(*quotation.shortest_sla), ".");
    }
  }
  if (observation.queues.empty()) {
    absl::StrAppend(&text, " What waits already is not known, and not counted.");
  }
  return text;
}

}  // namespace

absl::StatusOr<Quotation> Quote(const QuotedWork& work, const Observation& seen,
                                const DeadlineOptions& options) {
  MUSTER_RETURN_IF_ERROR(CheckWork(work));
  DeadlineOptions quoted = options;
  quoted.sla = work.sla.value_or(options.sla);
  quoted.patience = 0;
  MUSTER_RETURN_IF_ERROR(Check(quoted));
  const Observation observation = WithinBounds(work, seen, options.stale_after);
  double rate = observation.estimates.items_per_second;
  if (!(rate > 0)) {
    return absl::UnavailableError("it is not known yet how fast a replica works");
  }
  const Decision with = Ask(observation, quoted, quoted.sla - options.sla, work.items);
  // The promise of the quoted work does not apply to the waiting work, which keeps the target's.
  const Decision without = AskAboutTheRest(observation, options);
  if (std::max(with.tasks, without.tasks) != observation.fleet.tasks) {
    rate *= SizeThreads(observation.fleet, observation.estimates).gain;
  }

  Quotation quotation;
  const End end(observation, Waiting(observation) + work.items, rate, quoted.sla);
  const int committed = observation.fleet.committed();
  // Idle replicas stay, because there is work for them.
  const int anyway = std::max(committed, without.replicas);
  // However little of a replica the work needs, one does it.
  const int least = std::min(1, observation.bounds.max);
  quotation.replicas = std::max({anyway, with.replicas, least});
  const Feasibility verdict = end.With(quotation.replicas);
  quotation.feasible = verdict.feasible;
  quotation.finish = verdict.finish;
  quotation.deadline = observation.now + quoted.sla;
  if (!verdict.feasible) {
    quotation.late_by = std::max(absl::Nanoseconds(1), verdict.finish - quotation.deadline);
  }
  quotation.replicas_now = seen.fleet.committed();
  quotation.needs = verdict.needs;
  quotation.max = observation.bounds.max;
  quotation.replica_seconds =
      static_cast<double>(work.items) / rate +
      (quotation.replicas - anyway) * absl::ToDoubleSeconds(observation.estimates.cold_start);
  const bool grows = !IsThrottled(observation.estimates) || committed == 0;
  quotation.shortest_sla = end.ShortestPromise(grows ? quotation.max : committed);
  quotation.explanation = ExplainQuotation(quotation, observation);
  return quotation;
}

}  // namespace muster::scaling::policy
