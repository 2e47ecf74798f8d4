// SPDX-License-Identifier: Apache-2.0

// NewSchedule: what a command line says of a schedule to make: `muster schedule create`, and
// `muster batch submit` with --at or --in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/output/environment.h"
#include "cli/server/mesh_client.h"
#include "muster/base/clock.h"
#include "muster/item/labels.h"
#include "muster/v1/schedule_service.pb.h"

namespace muster::cli {

struct NewSchedule {
  std::string name;  // empty: one that follows from the rest
  std::string job;
  std::string input;  // the file with the content
  std::string cron;
  std::string time_zone;
  std::string at;
  std::optional<absl::Duration> in;
  std::string catch_up = "once";
  std::string handler_version;
  std::string tenant;
  std::optional<absl::Duration> sla;
  item::Labels labels;

  bool is_once() const { return !at.empty() || in.has_value(); }
};

// What `muster schedule update` changes of one; of what is empty, nothing.
struct ScheduleChanges {
  NewSchedule made;                  // without an input
  std::optional<uint64_t> revision;  // that the schedule must be at
};

// Adds `--at TIME` and `--in DURATION`, of which one may be there, and then none of the options
// `without`. `command` has these; it and `schedule` outlive the parsing.
void AddMoment(CLI::App* command, const std::vector<std::string>& without, NewSchedule* schedule);
// Adds `--catch-up none|once|all`, into `schedule`, which outlives the app.
void AddCatchUp(CLI::App* command, NewSchedule* schedule);

// InvalidArgument: the file is too long, or the time is none. Otherwise errors are those of the
// call, for people.
absl::StatusOr<v1::Schedule> CreateSchedule(const NewSchedule& schedule, const MeshClient& mesh,
                                            base::Clock* clock);

// Reads the schedule `made.name`, and gives it the changes unless another caller has changed it
// meanwhile. InvalidArgument: no change is named. Otherwise errors are those of the calls.
absl::StatusOr<v1::Schedule> UpdateSchedule(const ScheduleChanges& changes, const MeshClient& mesh,
                                            base::Clock* clock);

}  // namespace muster::cli
