// SPDX-License-Identifier: Apache-2.0

// HandlerRunner: has the handler of a job work on the records of one item at a time: all together,
// or one by one where only that keeps the fault of one transaction from its neighbours.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/handler/handler.h"
#include "muster/input/record_parser.h"
#include "services/processor/pool_metrics.h"
#include "services/processor/worker_setup.h"

namespace muster::processor {

// Not thread-safe: one per worker.
class HandlerRunner {
 public:
  // `setup` is not owned.
  HandlerRunner(const WorkerSetup* setup, std::unique_ptr<handler::Handler> handler)
      : setup_(setup), times_(&setup->metrics), handler_(std::move(handler)) {}

  // Runs the handler; `results` becomes what it said of the records, each of which has one verdict
  // if the outcome is kOk. On the last of several attempts it gets one transaction at a time, and
  // on any attempt where a value does not fit: then only the transactions at fault are rejected,
  // unless there are too many of them. A suspect, whose worker died with it, runs in a process of
  // its own. An error: the handler cannot be made.
  absl::StatusOr<handler::Outcome> Run(const handler::ItemContext& context, bool is_suspect,
                                       const input::ParsedRecords& records,
                                       std::optional<handler::Results>* results);

 private:
  // The handler for this attempt: a suspect gets the handler that runs in a process of its own.
  absl::StatusOr<handler::Handler*> HandlerFor(bool is_suspect);
  // Calls the handler and measures that; if it takes long, the log and the health troubles tell of
  // it.
  handler::Outcome Call(handler::Handler& handler, handler::ItemContext context,
                        std::vector<handler::Transaction> transactions, handler::Results& results);
  // Runs each of the records alone.
  handler::Outcome RunOneByOne(handler::Handler& handler, const handler::ItemContext& context,
                               const input::ParsedRecords& records, handler::Results& results);

  const WorkerSetup* const setup_;  // not owned
  HandlerTimes times_;
  const std::unique_ptr<handler::Handler> handler_;
  std::unique_ptr<handler::Handler> isolated_;  // once there was a suspect
};

}  // namespace muster::processor
