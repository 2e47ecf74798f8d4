// SPDX-License-Identifier: Apache-2.0

// WorkerView: what one processor does for one job, for people and for programs. Worker: a processor
// of a mesh.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/output/format.h"
#include "cli/server/mesh_client.h"
#include "muster/v1/mesh_service.pb.h"
#include "muster/v1/worker_service.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// A processor as the initiator knows it.
struct Worker {
  v1::Instance instance;
  Peer peer;

  const std::string& name() const { return instance.info().instance(); }
  bool serves() const { return Serves(instance); }
};

// The live processors that the initiator knows, in order of name; with a `name`, only that one.
// NotFound: no processor has that name.
absl::StatusOr<std::vector<Worker>> FindWorkers(MeshClient& mesh, const std::string& name);

// Unknown values are nullopt or empty.
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
  std::optional<absl::Duration> p50, p95, p99;  // of the handler
  // Wake-ups that found work, since the listener was made.
  std::optional<int64_t> wakeups_push;
  std::optional<int64_t> wakeups_safety;
  std::optional<int64_t> wakeups_scheduled;
  std::optional<int64_t> leases_lost;  // likewise
  std::string handler_version;
  std::string trouble;  // what keeps it from working, at the last heartbeat
  absl::Time heard;     // its last heartbeat, by the initiator's clock
  // Of the whole processor, for all of its jobs.
  double cpu_cores = 0;
  uint64_t resident_bytes = 0;

  static Table Columns();
  std::vector<std::string> Row() const;
  nlohmann::ordered_json Json() const;
};

// One view for each job that `worker` has or cannot work for, or for `job` only, made from its
// answer and its last heartbeat. If it did not answer, from the heartbeat alone.
std::vector<WorkerView> ViewsOf(const Worker& worker,
                                const absl::StatusOr<v1::QueryStateResponse>& answer,
                                const std::string& job);

}  // namespace muster::cli
