#include "cli/queue/check_command.h"

#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "cli/output/structured.h"
#include "cli/output/table.h"
#include "cli/queue/data_check.h"
#include "cli/server/place.h"
#include "muster/base/status_macros.h"
#include "muster/os/damage.h"
#include "muster/os/shelf.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

struct CheckOptions {
  CommonOptions common;
  bool repair = false;
};

// A line per damage at once, or all of them in one object of JSON at the end.
class Printer final : public os::Findings {
 public:
  Printer(const CheckOptions& options, const Environment& environment)
      : options_(options), out_(*environment.out) {}

  absl::Status Add(const os::Damage& damage) override {
    if (!damage.mendable) ++left_;
    if (is_structured()) {
      json_.push_back({{"part", damage.part},
                       {"kind", damage.kind},
                       {"name", damage.name},
                       {"why", damage.why},
                       {"remedy", damage.remedy},
                       {"mendable", damage.mendable}});
      return absl::OkStatus();
    }
    out_ << Printable(absl::StrCat(damage.part, ": ", damage.kind, " of ", damage.name, ": ",
                                   damage.why,
                                   options_.repair ? "; " : "; a repair: ", damage.remedy))
         << "\n";
    return absl::OkStatus();
  }

  void Conclude(const os::CheckSummary& summary, const std::string& quarantine) {
    if (is_structured()) {
      const ordered_json json = {{"records", summary.records},
                                 {"damaged", json_},
                                 {"repaired", options_.repair},
                                 {"kept_in", quarantine}};
      out_ << Structured(json, options_.common.output);
      return;
    }
    out_ << Grouped(summary.records) << " records, " << Grouped(summary.damaged) << " damaged\n";
    if (!quarantine.empty()) out_ << "what was taken away is in " << quarantine << "\n";
    if (summary.damaged > 0 && !options_.repair) {
      out_ << "muster queue check --repair mends what can be mended\n";
    }
  }

  // Damage that a repair cannot mend.
  int left() const { return left_; }

 private:
  bool is_structured() const { return IsStructured(options_.common.output); }

  const CheckOptions& options_;
  std::ostream& out_;
  ordered_json json_ = ordered_json::array();
  int left_ = 0;
};

absl::Status Check(const CheckOptions& options, const Environment& environment) {
  MUSTER_RETURN_IF_ERROR(RequireDataDir(options.common.data_dir));
  Printer printer(options, environment);
  os::Quarantine quarantine(options.common.data_dir);
  const os::CheckOptions check{&printer, options.repair ? &quarantine : nullptr};
  MUSTER_ASSIGN_OR_RETURN(const os::CheckSummary summary,
                          CheckRunData(options.common.data_dir, check, environment.clock));
  printer.Conclude(summary, quarantine.path());
  const bool damage_is_there = options.repair ? printer.left() > 0 : summary.damaged > 0;
  if (damage_is_there) environment.exit_code = kDamaged;
  return absl::OkStatus();
}

}  // namespace

void AddQueueCheck(CLI::App* queue, const Environment& environment) {
  CLI::App* const check = queue->add_subcommand(
      "check",
      "Read every stored record of queue, ledger, sync store and blobs; exit 6 if one is "
      "damaged");
  const auto options = std::make_shared<CheckOptions>();
  check->add_flag("--repair", options->repair,
                  "Mend what is damaged; what is taken away is kept in DATA_DIR/damaged");
  AddDataDir(check, &options->common);
  AddOutput(check, &options->common, Csv::kNo);
  check->callback([options, &environment] {
    if (const absl::Status status = Check(*options, environment); !status.ok()) {
      environment.Fail(status);
    }
  });
}

}  // namespace muster::cli
