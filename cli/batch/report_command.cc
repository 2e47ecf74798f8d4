// muster report BATCH
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "cli/batch/report_view.h"
#include "cli/batch/report_writer.h"
#include "cli/output/cure.h"
#include "cli/output/environment.h"
#include "cli/server/place.h"
#include "muster/base/status_macros.h"

namespace muster::cli {
namespace {

struct ReportOptions {
  CommonOptions common;
  uint64_t batch = 0;
  std::string group;
};

absl::Status Report(const ReportOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto view, OpenReportView(options.common, environment));
  return WriteReport(*view, {options.batch, options.group, options.common.output},
                     *environment.out);
}

}  // namespace

void AddReport(CLI::App* app, const Environment& environment) {
  CLI::App* const report = app->add_subcommand("report", "Print what a batch adds up to");
  const auto options = std::make_shared<ReportOptions>();
  report->add_option("BATCH", options->batch, "The batch's number")->required();
  report->add_option("--group", options->group, "Only this group of the job");
  AddDataDirOrServer(report, &options->common);
  AddController(report, &options->common);
  AddOutput(report, &options->common, Csv::kYes);
  report->callback([options, &environment] {
    if (const absl::Status status = Report(*options, environment); !status.ok()) {
      environment.Fail(WithListHint(status, "muster batch list", options->common));
    }
  });
}

}  // namespace muster::cli
