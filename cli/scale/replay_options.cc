// SPDX-License-Identifier: Apache-2.0
#include "cli/scale/replay_options.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/output/one_of.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/scaling/replay/timestamp.h"
#include "muster/scaling/rules/ruled_policy.h"
#include "muster/scaling/rules/rules_file.h"

namespace muster::cli {

namespace {

using scaling::replay::Service;
using scaling::replay::Shape;

// Adds an option that `parse` parses; `parse` answers whether it succeeded.
template <typename Parse>
args::Option AddParsed(CLI::App* command, const std::string& name, const std::string& about,
                       const std::string& complaint, Parse parse) {
  return args::AddTexts(
      command, name,
      [name, complaint, parse](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) {
          if (!parse(text)) {
            args::Refuse(name, absl::StrCat("'", text, "' is no ", complaint));
          }
        }
      },
      about);
}

bool ParseInto(const std::string& text, absl::Duration* duration) {
  const absl::StatusOr<absl::Duration> parsed = base::ParseDuration(text);
  if (parsed.ok()) *duration = *parsed;
  return parsed.ok();
}

args::Option AddDuration(CLI::App* command, const std::string& name, absl::Duration* duration,
                         const std::string& about) {
  return AddParsed(command, name, about, "time like 30s",
                   [duration](const std::string& text) { return ParseInto(text, duration); });
}

void AddInstant(CLI::App* command, const std::string& name, std::optional<absl::Time>* instant,
                const std::string& about) {
  AddParsed(command, name, about, "time like 1998-06-30 or 1998-06-30T08:00:00Z",
            [instant](const std::string& text) {
              *instant = scaling::replay::ParseTimestamp(text);
              return instant->has_value();
            });
}

// "600s+60s": from when, and for how long.
bool ParseOutage(const std::string& text, scaling::replay::Outage* outage) {
  const std::vector<std::string> parts = absl::StrSplit(text, '+');
  return parts.size() == 2 && ParseInto(parts[0], &outage->from) &&
         ParseInto(parts[1], &outage->length);
}

void AddTraceOptions(CLI::App* command, ReplayOptions* options) {
  args::Add(command, "--trace", &options->trace_file, "A CSV file with a header");
  scaling::replay::TraceOptions* const trace = &options->trace;
  args::Add(command, "--time-column", &trace->time_column, "The first by default");
  args::Add(command, "--count-column", &trace->count_column,
            "'count' or 'value' by default; where there is none, a row is one item");
  AddParsed(command, "--period", "How long a row's items are spread; until the next row by default",
            "time like 60s, or 0s", [trace](const std::string& text) {
              trace->period.emplace();
              return ParseInto(text, &*trace->period);
            });
  AddInstant(command, "--from", &trace->from, "Leave out the rows before it");
  AddInstant(command, "--to", &trace->to, "Leave out this row and those after it");
  args::Add(command, "--scale-counts", &trace->scale_counts, "So many times as many items")
      .Check(args::Range(1e-9, 1e9));
}

void AddWorkers(CLI::App* command, scaling::replay::SimOptions* sim) {
  AddDuration(command, "--service-time", &sim->service_time, "Of an item, in a task");
  args::Add(command, "--service", &sim->service,
            "fluid (default), or by the item: fixed, exponential, lognormal")
      .Transform(OneOf<Service>({{"fluid", Service::kFluid},
                                 {"fixed", Service::kFixed},
                                 {"deterministic", Service::kFixed},
                                 {"exponential", Service::kExponential},
                                 {"lognormal", Service::kLognormal}},
                                "{fluid,fixed,exponential,lognormal}"));
  args::Add(command, "--service-sigma", &sim->service_sigma, "Of a lognormal service time");
  AddDuration(command, "--cold-start", &sim->cold_start,
              "From the order to a replica's first item");
  args::Add(command, "--cold-start-shape", &sim->cold_start_shape,
            "fixed (default), exponential or lognormal")
      .Transform(OneOf<Shape>({{"fixed", Shape::kFixed},
                               {"exponential", Shape::kExponential},
                               {"lognormal", Shape::kLognormal}}));
  args::Add(command, "--cold-start-sigma", &sim->cold_start_sigma, "Of a lognormal cold start");
  AddDuration(command, "--sla", &sim->sla, "An item that takes longer is a violation");
  args::Add(command, "--tasks", &sim->tasks, "Items that a replica works on at a time")
      .CaptureDefaultStr();
  args::Add(command, "--min", &sim->min, "Replicas at least").CaptureDefaultStr();
  args::Add(command, "--max", &sim->max, "Replicas at most").CaptureDefaultStr();
}

void AddFaults(CLI::App* command, scaling::replay::Faults* faults) {
  AddDuration(command, "--metrics-delay", &faults->metrics_delay,
              "Policies see queue statistics that are so old");
  args::Add(command, "--lost-triggers", &faults->lost_triggers,
            "Share of the announcements that get lost: 0 to 1");
  args::Add(command, "--rate-factor", &faults->rate_factor,
            "Policies take a replica for so many times as fast as it is");
  AddParsed(command, "--outage",
            "FROM+LENGTH: the policy is down, from so long after the trace's start; more than once "
            "if need be",
            "outage like 600s+60s",
            [faults](const std::string& text) {
              return ParseOutage(text, &faults->outages.emplace_back());
            })
      .Repeatable();
}

}  // namespace

void AddReplayOptions(CLI::App* command, ReplayOptions* options) {
  AddTraceOptions(command, options);
  args::Add(command, "--recording", &options->recording_file,
            "Replay what a scaling agent recorded, and compare the decisions");
  AddWorkers(command, &options->sim);
  args::Add(command, "--policy", &options->policies,
            "deadline, keda[:TARGET[:PACE]], keda:sweep, hpa, backlog, fixed:N, oracle")
      .Delimiter(',');
  args::Add(command, "--patience", &options->patience, "Of the deadline policy: 0 to 1");
  args::Add(command, "--rules", &options->rules_file, "Hold the deadline policy to these rules");
  args::Add(command, "--target", &options->target, "Of the rules; the only one by default");
  AddFaults(command, &options->sim.faults);
  args::Add(command, "--seed", &options->sim.seed, "Of all that is random").CaptureDefaultStr();
  args::Add(command, "--seeds", &options->seeds, "Run so many seeds, and add them up")
      .CaptureDefaultStr();
  args::Add(command, "--plot", &options->plot_file, "Draw it into this file, as SVG");
  AddOutput(command, &options->common, Csv::kYes);
}

namespace {

using scaling::replay::PolicyEntry;
using scaling::rules::Rules;

absl::StatusOr<const scaling::rules::Target*> FindTarget(const ReplayOptions& options,
                                                         const Rules& rules) {
  if (options.target.empty()) {
    if (rules.targets.size() == 1) return &rules.targets.front();
    return absl::InvalidArgumentError("the rules have several targets: name one with --target");
  }
  const scaling::rules::Target* const target = rules.FindTarget(options.target);
  if (target != nullptr) return target;
  return absl::NotFoundError(absl::StrCat("the rules have no target '", options.target, "'"));
}

void TakeOver(const scaling::rules::Target& target, scaling::replay::SimOptions* sim,
              scaling::policy::DeadlineOptions* deadline) {
  if (sim->sla == absl::ZeroDuration()) sim->sla = target.sla_max.value_or(absl::ZeroDuration());
  sim->queue = target.queues.front();
  sim->min = std::max(sim->min, target.range.min);
  sim->max = std::min(sim->max, target.range.max);
  deadline->aim = target.sla_aim;
  deadline->patience = target.patience;
}

void ClampTo(const std::shared_ptr<const Rules>& rules, const std::string& target,
             PolicyEntry* entry) {
  entry->settings += ", rules";
  entry->make = [rules, target, make = std::move(entry->make)](uint64_t seed) {
    // The target was found in these very rules.
    return *scaling::rules::RuledPolicy::Make(rules, target, make(seed));
  };
}

}  // namespace

absl::StatusOr<std::vector<PolicyEntry>> ComposePolicies(ReplayOptions* options) {
  scaling::policy::DeadlineOptions deadline;
  deadline.patience = options->patience;
  std::shared_ptr<const Rules> rules;  // every run of the policy shares them
  std::string target_id;
  if (!options->rules_file.empty()) {
    MUSTER_ASSIGN_OR_RETURN(Rules loaded, scaling::rules::LoadRulesFile(options->rules_file));
    rules = std::make_shared<const Rules>(std::move(loaded));
    MUSTER_ASSIGN_OR_RETURN(const scaling::rules::Target* const target,
                            FindTarget(*options, *rules));
    TakeOver(*target, &options->sim, &deadline);
    target_id = target->id;
  }
  MUSTER_RETURN_IF_ERROR(Check(options->sim));
  deadline.sla = options->sim.sla;
  std::vector<PolicyEntry> policies;
  for (const std::string& name : options->policies) {
    MUSTER_ASSIGN_OR_RETURN(std::vector<PolicyEntry> found,
                            scaling::replay::FindPolicies(name, options->sim, deadline));
    for (PolicyEntry& entry : found) {
      if (rules != nullptr && entry.name == "deadline") ClampTo(rules, target_id, &entry);
      policies.push_back(std::move(entry));
    }
  }
  return policies;
}

}  // namespace muster::cli
