// SPDX-License-Identifier: Apache-2.0

// muster check [--repair]: checks a data directory as `muster run` uses it: what the backends
// stored, and what the parts say of each other. `muster queue check` is its earlier name.

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "cli/queue/commands.h"
#include "cli/server/options.h"
#include "muster/args/option.h"
#include "muster/backend/backend.h"
#include "muster/backend/data_dir_check.h"
#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/item/result_codec.h"
#include "muster/item/work_item_codec.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/os/quarantine.h"
#include "nlohmann/json.hpp"
#include "services/initiator/batch/opener.h"

namespace muster::cli {

namespace {

using initiator::batch::kBatchNumbers;
using nlohmann::ordered_json;

// Checks the bodies of messages, the items among them against the ledger.
class BodyCheck {
 public:
  explicit BodyCheck(backend::DataDirUrls urls) : urls_(std::move(urls)) {}

  // Queues that no job names hold what they like.
  absl::Status Check(const queue::QueueId& queue, absl::string_view body, blob::BlobStore* blobs) {
    const std::optional<item::Direction> direction = item::DirectionOf(queue.name);
    if (!direction.has_value()) return absl::OkStatus();
    if (*direction == item::Direction::kOutput) {
      return OnlyDataLoss(item::FirstError(item::DecodeResults(body, blobs)));
    }
    const absl::StatusOr<item::WorkItem> item = item::DecodeWorkItem(body, blobs);
    const absl::Status damage =
        OnlyDataLoss(item.ok() && item->by_reference ? CheckReference(*item) : item.status());
    return damage.ok() || IsOfABatchThatIsOver(body) ? absl::OkStatus() : damage;
  }

 private:
  static absl::Status OnlyDataLoss(const absl::Status& status) {
    return absl::IsDataLoss(status) ? status : absl::OkStatus();
  }

  // A ledger that cannot be opened has a check of its own.
  ledger::BatchLedger* Ledger() {
    if (ledger_ == nullptr) {
      auto opened = backend::OpenBatchLedger(urls_.ledger, backend::Mode::kReadOnly);
      if (opened.ok()) ledger_ = *std::move(opened);
    }
    return ledger_.get();
  }

  // DataLoss: the ledger has other content under the item's index. An item that it lacks is no
  // damage of the message: the run of its batch splits it once more.
  absl::Status CheckReference(const item::WorkItem& item) {
    if (Ledger() == nullptr) return absl::OkStatus();
    const auto boundary = Ledger()->Items(item.identity.batch, item.index, 1);
    if (!boundary.ok() || boundary->empty() || boundary->front().content == item.content) {
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat("work item ", item.identity.batch, "/", item.index,
                                            ": the ledger has other content for it"));
  }

  // A copy of an item of such a batch is no damage if it cannot be read: a processor drops it.
  bool IsOfABatchThatIsOver(absl::string_view body) {
    const absl::StatusOr<item::WorkItem> header = item::DecodeWorkItemHeader(body);
    return header.ok() && Ledger() != nullptr &&
           ledger::IsOver(*Ledger(), header->identity.batch).value_or(false);
  }

  const backend::DataDirUrls urls_;
  std::unique_ptr<ledger::BatchLedger> ledger_;
};

// Absent where there is no sync store. An error is one that the check of the sync store has told.
absl::StatusOr<sync::VersionedData> NextBatchNumber(const backend::DataDirUrls& urls) {
  const auto sync = backend::OpenSyncStore(urls.sync, backend::Mode::kReadOnly);
  if (absl::IsNotFound(sync.status())) return sync::VersionedData();
  MUSTER_RETURN_IF_ERROR(sync.status());
  return (*sync)->Get(kBatchNumbers);
}

// A number that came twice would count one batch's items as another's.
absl::Status CheckBatchNumbers(const backend::DataDirUrls& urls, uint64_t last_batch,
                               const os::CheckOptions& options, os::CheckSummary* summary) {
  const absl::StatusOr<sync::VersionedData> record = NextBatchNumber(urls);
  if (absl::IsDataLoss(record.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(record.status());
  uint64_t next = 0;
  if (absl::SimpleAtoi(record->data, &next) && next > last_batch) return absl::OkStatus();
  if (record->version == sync::kAbsent && last_batch == 0) return absl::OkStatus();
  ++summary->damaged;
  os::Damage damage{.part = "sync",
                    .kind = "record",
                    .name = absl::StrCat("key '", kBatchNumbers, "'"),
                    .why = absl::StrCat("it would give a number again up to ", last_batch),
                    .remedy = absl::StrCat("the next batch is ", last_batch + 1)};
  if (record->version != sync::kAbsent) damage.records = {{"data", kBatchNumbers, record->data}};
  MUSTER_RETURN_IF_ERROR(options.findings->Add(damage));
  if (options.quarantine == nullptr) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(options.quarantine->Keep(damage));
  MUSTER_RETURN_IF_ERROR(options.quarantine->Sync());
  MUSTER_ASSIGN_OR_RETURN(const auto sync,
                          backend::OpenSyncStore(urls.sync, backend::Mode::kReadWrite));
  MUSTER_ASSIGN_OR_RETURN(
      const bool written,
      sync->TryWrite(kBatchNumbers, absl::StrCat(last_batch + 1), record->version));
  if (written) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("another process wrote ", damage.name, ": try again"));
}

// FailedPrecondition: a run works with the directory. NotFound: nothing is there.
absl::StatusOr<os::CheckSummary> CheckRunData(const std::string& data_dir,
                                              const os::CheckOptions& options,
                                              const std::string& account, base::Clock* clock) {
  backend::DataDirCheck check;
  check.check = options;
  check.account = account;
  check.clock = clock;
  const backend::DataDirUrls urls(data_dir);
  const auto bodies = std::make_shared<BodyCheck>(urls);
  check.check_body = [bodies](const queue::QueueId& queue, absl::string_view body,
                              blob::BlobStore* blobs) { return bodies->Check(queue, body, blobs); };
  MUSTER_ASSIGN_OR_RETURN(backend::DataDirSummary summary, backend::CheckDataDir(data_dir, check));
  MUSTER_RETURN_IF_ERROR(CheckBatchNumbers(urls, summary.last_batch, options, &summary));
  return summary;
}

struct CheckOptions {
  CommonOptions common;
  bool repair = false;
  std::string account = item::kLocalAccount;
};

// A line per damage at once, or all of them in one object of JSON at the end.
class Printer final : public os::Findings {
 public:
  Printer(const CheckOptions& options, const Environment& environment)
      : options_(options), environment_(environment), out_(*environment.out) {}

  absl::Status Add(const os::Damage& damage) override {
    if (!damage.mendable) ++left_;
    if (IsStructured(options_.common.output)) {
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

  void Note(const std::string& line) override {
    if (IsStructured(options_.common.output)) {
      notes_.push_back(line);
    } else {
      out_ << Printable(line) << "\n";
    }
  }

  void Conclude(const os::CheckSummary& summary, const std::string& quarantine) {
    const ordered_json json = {{"records", summary.records},
                               {"damaged", json_},
                               {"notes", notes_},
                               {"repaired", options_.repair},
                               {"kept_in", quarantine}};
    if (PrintIfStructured(json, options_.common, environment_)) return;
    out_ << Grouped(summary.records) << " records, " << Grouped(summary.damaged) << " damaged\n";
    if (!quarantine.empty()) out_ << "the removed data are in " << quarantine << "\n";
    if (summary.damaged > 0 && !options_.repair) {
      out_ << "muster check --repair mends what can be mended\n";
    }
  }

  // Damage that a repair cannot mend.
  int left() const { return left_; }

 private:
  const CheckOptions& options_;
  const Environment& environment_;
  std::ostream& out_;
  ordered_json json_ = ordered_json::array();
  ordered_json notes_ = ordered_json::array();
  int left_ = 0;
};

absl::Status Check(const CheckOptions& options, const Environment& environment) {
  MUSTER_RETURN_IF_ERROR(RequireDataDir(options.common.data_dir));
  Printer printer(options, environment);
  os::Quarantine quarantine(options.common.data_dir);
  const os::CheckOptions check{&printer, options.repair ? &quarantine : nullptr};
  MUSTER_ASSIGN_OR_RETURN(
      const os::CheckSummary summary,
      CheckRunData(options.common.data_dir, check, options.account, environment.clock));
  printer.Conclude(summary, quarantine.path());
  const bool damage_is_there = options.repair ? printer.left() > 0 : summary.damaged > 0;
  if (damage_is_there) environment.exit_code = kDamaged;
  return absl::OkStatus();
}

}  // namespace

void AddCheck(CLI::App* app, const Environment& environment) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App* const check =
      AddCommand(app, "check",
                 "Read every stored record of queue, ledger, sync store, event streams, blobs and "
                 "report; exit 6 if one is "
                 "damaged",
                 environment, [options, &environment] { return Check(*options, environment); });
  args::AddFlag(check, "--repair", &options->repair,
                "Mend the damage; keep the removed data in DATA_DIR/damaged");
  args::Add(check, "--account", &options->account,
            "Of a queue that has lost its name; of a queue gateway's, one of its accounts")
      .CaptureDefaultStr();
  AddOwnDataDir(check, &options->common);
  AddOutput(check, &options->common);
}

}  // namespace muster::cli
