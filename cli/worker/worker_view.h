// WorkerView: what one processor does for one job, for people and for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/output/table.h"
#include "cli/worker/workers.h"
#include "muster/v1/worker_service.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// What is not known is nullopt, or empty.
struct WorkerView {
  std::string instance;
  std::string address;
  std::string job;  // empty: it works for none
  std::string phase;
  std::optional<int64_t> busy;    // threads with work in hand, at the last heartbeat
  std::optional<int64_t> active;  // threads that run
  std::optional<int64_t> max;
  std::optional<int64_t> depth;  // ready messages
  std::optional<double> items_per_second;
  std::optional<absl::Duration> p95;  // of the handler
  // Wake-ups that found work, since the listener was made.
  std::optional<int64_t> wakeups_push;
  std::optional<int64_t> wakeups_safety;
  std::optional<int64_t> wakeups_scheduled;
  std::optional<int64_t> leases_lost;  // likewise
  std::string handler_version;
  std::string trouble;  // what keeps it from working, at the last heartbeat
  absl::Time heard;     // its last heartbeat, by the initiator's clock

  static Table Columns();
  std::vector<std::string> Row() const;
  nlohmann::ordered_json Json() const;
};

// A view for each job that `worker` has or is in trouble with, or for `job` only, by what it
// answered and by its last heartbeat. One that did not answer is told of by its heartbeat alone.
std::vector<WorkerView> ViewsOf(const Worker& worker,
                                const absl::StatusOr<v1::QueryStateResponse>& answer,
                                const std::string& job);

}  // namespace muster::cli
