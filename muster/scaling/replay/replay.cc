// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/replay.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/scaling/replay/oracle.h"
#include "muster/scaling/replay/simulator.h"

namespace muster::scaling::replay {
namespace {

absl::Status CheckSize(const Trace& trace, const ReplayRequest& request) {
  const SimOptions& options = request.options;
  if (trace.items > kMaxWorkUs / absl::ToInt64Microseconds(options.service_time)) {
    return absl::OutOfRangeError("the items take too long together: use a shorter service time");
  }
  if (options.service != Service::kFluid && trace.items > kMaxItemsOneByOne) {
    return absl::OutOfRangeError(absl::StrCat("one by one, at most ", kMaxItemsOneByOne,
                                              " items can be served; the trace has ", trace.items,
                                              ": use fluid service"));
  }
  if (request.seeds >= 1 && request.seeds <= kMaxSeeds) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("seeds must lie between 1 and ", kMaxSeeds));
}

Metrics RunOnce(const Trace& trace, const SimOptions& options, const Oracle& oracle,
                const PolicyEntry& entry, const SeriesSink& sink) {
  if (entry.make == nullptr) return MeasureOracle(oracle, trace, options, sink);
  const std::unique_ptr<scaling::policy::Policy> policy = entry.make(options.seed);
  return Simulate(trace, options, policy.get(), sink);
}

}  // namespace

absl::StatusOr<std::vector<ReplayRow>> Replay(const Trace& trace, const ReplayRequest& request) {
  MUSTER_RETURN_IF_ERROR(Check(request.options));
  MUSTER_RETURN_IF_ERROR(CheckSize(trace, request));
  const Oracle oracle = FindOracle(trace, request.options);
  std::vector<ReplayRow> rows;
  for (const PolicyEntry& entry : request.policies) {
    ReplayRow row{entry.name, entry.settings, {}, 0};
    for (int i = 0; i < request.seeds; ++i) {
      SimOptions options = request.options;
      options.seed += static_cast<uint64_t>(i);
      const bool shown = i == 0 && request.sink_of != nullptr;
      const SeriesSink sink = shown ? request.sink_of(entry) : SeriesSink();
      Metrics metrics = RunOnce(trace, options, oracle, entry, sink);
      if (i == 0) {
        row.metrics = std::move(metrics);
      } else {
        row.metrics.Merge(metrics);
      }
    }
    if (oracle.cost_seconds > 0) {
      row.cost_over_oracle = row.metrics.replica_seconds / (oracle.cost_seconds * request.seeds);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace muster::scaling::replay
