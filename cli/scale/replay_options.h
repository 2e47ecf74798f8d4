// SPDX-License-Identifier: Apache-2.0

// ReplayOptions: the options of `muster replay`, and the policies that it compares.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/output/environment.h"
#include "muster/scaling/replay/options.h"
#include "muster/scaling/replay/policy_catalog.h"
#include "muster/scaling/replay/trace.h"

namespace muster::cli {

struct ReplayOptions {
  CommonOptions common;
  std::string trace_file;
  std::string recording_file;
  std::string rules_file;
  std::string target;  // of the rules; "": the only one
  std::string plot_file;
  std::vector<std::string> policies = {"deadline", "keda", "oracle"};
  int seeds = 1;
  double patience = 0.5;
  scaling::replay::TraceOptions trace;
  scaling::replay::SimOptions sim;  // an sla of 0: the rules' own
};

// Adds them to `command`, which must not outlive `options`.
void AddReplayOptions(CLI::App* command, ReplayOptions* options);

// ComposePolicies makes the policies that `muster replay` compares, and puts the rules around
// muster's own.

// Copies what the rules say about the target into `options->sim`: its SLA if none was given, the
// name of its queue, and its bounds. InvalidArgument, NotFound: an option or the rules are wrong.
absl::StatusOr<std::vector<scaling::replay::PolicyEntry>> ComposePolicies(ReplayOptions* options);

}  // namespace muster::cli
