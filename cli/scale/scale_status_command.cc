// muster scale status [TARGET] | simulate TARGET --items N
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/output/structured.h"
#include "cli/scale/quote_command.h"
#include "cli/scale/quote_view.h"
#include "cli/scale/scale_command.h"
#include "cli/scale/scale_view.h"
#include "cli/scale/scaling_agent.h"
#include "cli/scale/target_view.h"
#include "muster/base/proto_time.h"
#include "muster/base/status_macros.h"
#include "muster/scaling/policy/simulate.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

struct StatusOptions {
  CommonOptions common;
  std::string target;  // empty: all
};

struct SimulateOptions {
  CommonOptions common;
  std::string target;
  scaling::policy::QuotedWork work;
  std::optional<double> price;
};

absl::Status ShowTargets(const StatusOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto agent, ScalingAgentClient::Find(options.common));
  v1::ListTargetsRequest request;
  request.set_target(options.target);
  MUSTER_ASSIGN_OR_RETURN(const auto listed,
                          agent->Call<v1::ListTargetsResponse>(&ScalingStub::ListTargets, request));
  Table table = TargetColumns();
  ordered_json json = ordered_json::array();
  for (const v1::ScalingTarget& target : listed.targets()) {
    table.AddRow(TargetRow(target, environment.clock->Now()));
    json.push_back(TargetJson(target));
  }
  PrintRows(table, json, options.common.output, environment);
  return absl::OkStatus();
}

absl::Status SimulateWork(const SimulateOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto agent, ScalingAgentClient::Find(options.common));
  v1::SimulateRequest request = scaling::policy::ToProto(options.work);
  request.set_target(options.target);
  MUSTER_ASSIGN_OR_RETURN(auto simulated,
                          agent->Call<v1::SimulateResponse>(&ScalingStub::Simulate, request));
  QuoteView view;
  view.target = options.target;
  view.price = options.price;
  view.quote = scaling::policy::QuoteOf(std::move(simulated), options.work.items);
  if (IsStructured(options.common.output)) {
    PrintStructured(view.Json(), options.common.output, environment);
  } else {
    view.PrintTo(*environment.out, environment.clock->Now());
  }
  environment.exit_code = view.Code();
  return absl::OkStatus();
}

}  // namespace

void AddScaleStatus(CLI::App* scale, const Environment& environment) {
  const auto options = std::make_shared<StatusOptions>();
  AddScaleVerb(scale, {"status", "Where each target stands", Csv::kYes}, options, ShowTargets,
               environment)
      ->add_option("TARGET", options->target, "This one only");
  const auto work = std::make_shared<SimulateOptions>();
  CLI::App* const simulate = AddScaleVerb(
      scale, {"simulate", "What would become of more work, put now; exit 4 if it would be late"},
      work, SimulateWork, environment);
  simulate->add_option("TARGET", work->target, "As the rules name it")->required();
  simulate->add_option("--items", work->work.items, "So many work items")
      ->required()
      ->check(CLI::Range(int64_t{1}, scaling::policy::kMaxQuotedItems));
  AddSla(simulate, &work->work.sla);
  simulate
      ->add_option("--rate", work->work.items_per_second,
                   "Items per second of one replica, in place of what is known")
      ->check(CLI::PositiveNumber);
  simulate->add_option("--price", work->price, "Dollars for an hour of a replica")
      ->check(CLI::NonNegativeNumber);
}

}  // namespace muster::cli
