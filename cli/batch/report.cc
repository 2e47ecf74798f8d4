// SPDX-License-Identifier: Apache-2.0

// muster report BATCH

#include "cli/batch/report.h"

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/batch/commands.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/backend/backend.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/report/remote/remote_report_client.h"
#include "muster/report/report_proto.h"
#include "muster/v1/report_service.grpc.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

// Of the cause of a dead letter: a line or three of a terminal. `batch dead-letters` has all of it.
constexpr size_t kMaxCauseBytes = 256;

// Line ends within fields of which no warning is printed.
constexpr uint64_t kFewLines = 3;

// "2 records span several lines, 35 lines in all: those that begin at line 7, 91".
std::string InWords(const base::MultilineRecords& multiline) {
  const bool is_one = multiline.records == 1;
  const bool are_more = multiline.records > multiline.first.size();
  return absl::StrCat(Counted(multiline.records, "record"),
                      is_one ? " spans several lines, " : " span several lines, ",
                      Grouped(multiline.lines), " lines in all: ",
                      is_one     ? "it begins at line "
                      : are_more ? "the first begin at lines "
                                 : "they begin at lines ",
                      absl::StrJoin(multiline.first, ", "));
}

bool IsLate(const std::optional<item::PromiseState>& promise) {
  return promise.has_value() && promise->late_by > absl::ZeroDuration();
}

}  // namespace

void AddPromise(const std::optional<item::PromiseState>& promise, nlohmann::ordered_json* json) {
  if (!promise.has_value()) return;
  (*json)["sla_seconds"] = absl::ToDoubleSeconds(promise->sla);
  (*json)["deadline"] = Rfc3339(promise->deadline);
  (*json)["late_by_seconds"] = absl::ToDoubleSeconds(promise->late_by);
  (*json)["at_risk"] = promise->at_risk;
}

std::optional<item::PromiseState> PromiseOf(const v1::BatchStatus& status) {
  if (!status.has_deadline()) return std::nullopt;
  item::PromiseState promise;
  promise.sla = base::FromProto(status.sla());
  promise.deadline = base::FromProto(status.deadline());
  promise.late_by = base::FromProto(status.late_by());
  promise.at_risk = status.at_risk();
  return promise;
}

void AddMultiline(const base::MultilineRecords& multiline, nlohmann::ordered_json* json) {
  if (multiline.records == 0) return;
  (*json)["multiline_records"] = multiline.records;
  (*json)["multiline_record_lines"] = multiline.lines;
  (*json)["multiline_first_lines"] = multiline.first;
}

nlohmann::ordered_json Outcome::Json() const {
  nlohmann::ordered_json json = {
      {"batch", batch},
      {"job", job},
      {"transactions", counted.transactions},
      {"aggregated", counted.aggregated},
      {"rejected", counted.rejected},
      {"dead_lettered", counted.dead_lettered},
      {"duplicates_dropped", counted.duplicates},
      {"items", counted.items()},
      {"attempts", counted.attempts},
      {"seconds", seconds},
      {"transactions_per_second", transactions_per_second},
      {"complete", complete},
  };
  AddPromise(promise, &json);
  AddMultiline(multiline, &json);
  return json;
}

std::string Outcome::Text() const {
  const auto number = [](int64_t value) { return Grouped(static_cast<uint64_t>(value)); };
  const uint64_t now = static_cast<uint64_t>(counted.transactions) - counted_before;
  const std::string of_these =
      counted_before > 0 ? absl::StrCat("; this run: ", Counted(now, "transaction")) : "";
  // None: the clock was set back meanwhile.
  const std::string how_long =
      seconds > 0 ? absl::StrFormat(" in %.2f s, %s transactions/s", seconds,
                                    Grouped(static_cast<uint64_t>(transactions_per_second)))
                  : "";
  return absl::StrCat(
      "batch ", batch, ": ", Counted(static_cast<uint64_t>(counted.transactions), "transaction"),
      " = ", number(counted.aggregated), " aggregated + ", number(counted.rejected), " rejected + ",
      number(counted.dead_lettered), " dead-lettered\n",
      Counted(static_cast<uint64_t>(counted.items()), "item"), of_these, how_long, "\n",
      IsLate(promise) ? absl::StrCat("late: ", item::ShowLateness(*promise), "\n") : "",
      multiline.records > 0 ? absl::StrCat(InWords(multiline), "\n") : "");
}

std::string Outcome::MultilineWarning(const input::InputFormat& input) const {
  const uint64_t swallowed = multiline.lines - multiline.records;  // if none of them is meant
  if (input.expects_multiline || swallowed <= kFewLines) return "";
  return absl::StrCat(
      "warning: ", InWords(multiline),
      ". If stray quotes have swallowed records, write `multiline: false` or `quote: "
      "none` below `input` in the job file; if the line ends are meant, write "
      "`multiline: true`\n");
}

std::string Outcome::Losses(const job::Tolerance& tolerate, const std::string& where) const {
  std::string lines;
  if (counted.rejected > 0) {
    const bool tolerated = tolerate.Allows(counted.rejected, counted.transactions);
    absl::StrAppend(&lines, Counted(static_cast<uint64_t>(counted.rejected), "transaction"),
                    counted.rejected == 1 ? " was" : " were", " rejected",
                    tolerated ? " (tolerated)" : "", ": muster batch rejections ", batch, where,
                    "\n");
  }
  if (counted.items_dead > 0) {
    absl::StrAppend(&lines, Counted(static_cast<uint64_t>(counted.items_dead), "item"),
                    counted.items_dead == 1 ? " was" : " were",
                    " given up: muster batch dead-letters ", batch, where, "\n");
  }
  if (first_dead.has_value()) {
    absl::StrAppend(&lines, "  item ", first_dead->index,
                    counted.items_dead == 1 ? ": " : ", the first of them: ",
                    base::Printable(first_dead->cause, kMaxCauseBytes), "\n");
  }
  return lines;
}

int Outcome::Code(const job::Tolerance& tolerate) const {
  if (!complete) return kInterrupted;
  if (counted.dead_lettered > 0 || !tolerate.Allows(counted.rejected, counted.transactions)) {
    return kPartial;
  }
  return IsLate(promise) ? kDeadlineMissed : kOk;
}

report::Progress ProgressOf(const v1::BatchStatus& status) {
  report::Progress progress;
  progress.batch = status.batch();
  progress.items_counted = status.items() - status.items_dead();
  progress.items_dead = status.items_dead();
  progress.transactions = status.transactions();
  progress.aggregated = status.aggregated();
  progress.rejected = status.rejected();
  progress.dead_lettered = status.dead_lettered();
  progress.duplicates = status.duplicates_dropped();
  progress.attempts = status.attempts();
  progress.retry_of = status.retry_of();
  progress.retried_in.assign(status.retried_in().begin(), status.retried_in().end());
  progress.replaces.assign(status.replaces().begin(), status.replaces().end());
  progress.replaced_by = status.replaced_by();
  return progress;
}

namespace {

using report::GroupRow;
using report::GroupShape;

std::vector<std::string> Cells(const GroupRow& row) {
  std::vector<std::string> cells = row.keys;
  for (const base::Decimal& measure : row.measures) cells.push_back(measure.ToString());
  return cells;
}

Table EmptyTable(const GroupShape& group) {
  Table table;
  for (const std::string& key : group.keys) table.AddColumn(key);
  for (const report::MeasureShape& measure : group.measures) {
    table.AddColumn(measure.name, Align::kRight);
  }
  return table;
}

// Prints each group as a titled table, once it has all of its rows.
class TableWriter {
 public:
  TableWriter(const ReportRequest* request, std::ostream* out) : request_(*request), out_(*out) {}

  void Begin(const GroupShape& group) {
    PrintTable();
    table_ = EmptyTable(group);
    group_ = group.name;
    rows_ = 0;
  }

  void Add(const GroupRow& row) {
    if (request_.max_rows < 0 || rows_ < request_.max_rows) table_->AddRow(Cells(row));
    ++rows_;
  }

  absl::Status End() {
    PrintTable();
    return absl::OkStatus();
  }

 private:
  void PrintTable() {
    if (!table_.has_value()) return;
    out_ << (is_first_ ? "" : "\n") << group_ << "\n\n";
    is_first_ = false;
    table_->PrintTo(out_);
    if (request_.max_rows < 0 || rows_ <= request_.max_rows) return;
    out_ << "… and " << Grouped(static_cast<uint64_t>(rows_ - request_.max_rows))
         << " more: muster report " << request_.batch << " --group " << group_ << request_.where
         << "\n";
  }

  const ReportRequest& request_;
  std::ostream& out_;
  bool is_first_ = true;
  std::string group_;
  std::optional<Table> table_;
  int64_t rows_ = 0;
};

class CsvWriter {
 public:
  explicit CsvWriter(std::ostream* out) : out_(*out) {}

  void Begin(const GroupShape& group) {
    if (names_.empty()) table_ = EmptyTable(group);
    names_.push_back(group.name);
  }

  void Add(const GroupRow& row) {
    if (names_.size() == 1) table_.AddRow(Cells(row));
  }

  absl::Status End() {
    if (names_.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "CSV holds one table: choose one with --group: ", absl::StrJoin(names_, ", ")));
    }
    table_.PrintCsvTo(out_);
    return absl::OkStatus();
  }

 private:
  std::ostream& out_;
  std::vector<std::string> names_;
  Table table_;  // of the first group
};

nlohmann::ordered_json JsonRow(const GroupShape& group, const GroupRow& row) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (size_t i = 0; i < group.keys.size(); ++i) object[group.keys[i]] = row.keys[i];
  for (size_t i = 0; i < group.measures.size(); ++i) {
    object[group.measures[i].name] = row.measures[i].ToString();
  }
  return object;
}

// Row by row: a report may be larger than memory should be.
class JsonWriter {
 public:
  JsonWriter(uint64_t batch, std::ostream* out) : batch_(batch), out_(*out) {}

  // Not before something is there to be said: an error should leave no output.
  void Begin(const GroupShape& group) {
    if (group_.has_value()) {
      out_ << "]},";
    } else {
      BeginReport();
    }
    group_ = group;
    separator_ = "";
    out_ << "{\"name\":" << nlohmann::json(group.name) << ",\"rows\":[";
  }

  void Add(const GroupRow& row) {
    out_ << separator_
         << JsonRow(*group_, row)
                .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    separator_ = ",";
  }

  absl::Status End() {
    if (!group_.has_value()) BeginReport();
    out_ << (group_.has_value() ? "]}" : "") << "]}\n";
    return absl::OkStatus();
  }

 private:
  void BeginReport() { out_ << "{\"batch\":" << batch_ << ",\"groups\":["; }

  const uint64_t batch_;
  std::ostream& out_;
  std::optional<GroupShape> group_;
  const char* separator_ = "";
};

// Row by row, as JsonWriter.
class YamlWriter {
 public:
  YamlWriter(uint64_t batch, std::ostream* out) : batch_(batch), out_(*out) {}

  void Begin(const GroupShape& group) {
    if (group_.has_value()) {
      EndGroup();
    } else {
      out_ << "batch: " << batch_ << "\ngroups:\n";
    }
    group_ = group;
    has_rows_ = false;
    out_ << "  - name: " << YamlScalar(group.name) << "\n    rows:";
  }

  void Add(const GroupRow& row) {
    if (!has_rows_) out_ << "\n";
    has_rows_ = true;
    out_ << YamlItem(JsonRow(*group_, row), 6);
  }

  absl::Status End() {
    if (group_.has_value()) {
      EndGroup();
    } else {
      out_ << "batch: " << batch_ << "\ngroups: []\n";
    }
    return absl::OkStatus();
  }

 private:
  void EndGroup() {
    if (!has_rows_) out_ << " []\n";
  }

  const uint64_t batch_;
  std::ostream& out_;
  std::optional<GroupShape> group_;
  bool has_rows_ = false;
};

template <typename Writer>
absl::Status WriteWith(Writer writer, ReadRows read) {
  report::RowVisitor visitor;
  visitor.on_group = [&writer](const GroupShape& group) {
    writer.Begin(group);
    return absl::OkStatus();
  };
  visitor.on_row = [&writer](const GroupRow& row) { writer.Add(row); };
  MUSTER_RETURN_IF_ERROR(read(visitor));
  return writer.End();
}

}  // namespace

absl::Status WriteReport(ReadRows read, const ReportRequest& request, std::ostream& out) {
  switch (request.format) {
    case OutputFormat::kTable:
      return WriteWith(TableWriter(&request, &out), read);
    case OutputFormat::kJson:
      return WriteWith(JsonWriter(request.batch, &out), read);
    case OutputFormat::kYaml:
      return WriteWith(YamlWriter(request.batch, &out), read);
    case OutputFormat::kCsv:
      return WriteWith(CsvWriter(&out), read);
  }
  return absl::InternalError("unknown output format");
}

namespace {

struct ReportOptions {
  CommonOptions common;
  uint64_t batch = 0;
  std::string group;
};

// Where the counting of the batch stands, of the moment at which the rows were read, or soon after.
absl::Status ReadFromDataDir(const ReportOptions& options, base::Clock* clock,
                             const report::RowVisitor& visitor, report::Progress* counted) {
  const std::string& data_dir = options.common.data_dir;
  MUSTER_RETURN_IF_ERROR(RequireDataDir(data_dir));
  MUSTER_ASSIGN_OR_RETURN(const auto store,
                          backend::OpenReportStore(backend::DataDirUrls(data_dir).report,
                                                   backend::Mode::kReadOnly, clock));
  MUSTER_ASSIGN_OR_RETURN(const auto reader, store->Read());
  MUSTER_RETURN_IF_ERROR(report::VisitRows(*reader, options.batch, options.group, visitor));
  MUSTER_ASSIGN_OR_RETURN(*counted, reader->GetProgress(options.batch));
  return absl::OkStatus();
}

absl::Status ReadFromServer(const ReportOptions& options, const report::RowVisitor& visitor,
                            report::Progress* counted) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, MeshClient::Open(options.common.server));
  MUSTER_ASSIGN_OR_RETURN(const Peer controller, mesh->Controller());
  report::remote::ReadRequest request;
  request.batch = options.batch;
  request.group = options.group;
  request.timeout = mesh->options().timeout.value_or(report::remote::kDefaultReportTimeout);
  v1::GetProgressRequest standing;
  standing.set_batch(options.batch);
  // Before the rows: a batch that is complete stays so, but for a redrive.
  MUSTER_ASSIGN_OR_RETURN(const auto response,
                          mesh->Call(&v1::ReportService::Stub::GetProgress, standing, controller));
  *counted = report::FromProto(response.progress());
  return Explain(report::remote::ReadReport(controller.channel, request, visitor), controller);
}

// FailedPrecondition: no receipt proves what was printed.
absl::Status CheckExact(const report::Progress& counted) {
  if (counted.is_complete() && !counted.cancelled.has_value()) return absl::OkStatus();
  const char* const why = counted.cancelled.has_value() ? "is cancelled"
                          : counted.reopened            ? "is open again after a redrive"
                                                        : "is not complete";
  return absl::FailedPreconditionError(absl::StrCat(
      "batch ", counted.batch, " ", why, ": ",
      Counted(static_cast<uint64_t>(counted.transactions), "transaction"),
      " of it are accounted for so far; `muster batch get ", counted.batch, "` says more"));
}

absl::Status Report(const ReportOptions& options, const Environment& environment) {
  report::Progress counted;
  const auto read = [&](const report::RowVisitor& visitor) {
    return options.common.server.named()
               ? ReadFromServer(options, visitor, &counted)
               : ReadFromDataDir(options, environment.clock, visitor, &counted);
  };
  MUSTER_RETURN_IF_ERROR(
      WriteReport(read, {options.batch, options.group, options.common.output}, *environment.out));
  return CheckExact(counted);
}

}  // namespace

void AddReport(CLI::App* app, const Environment& environment) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* const report = AddCommand(
      app, "report", "Print what a batch adds up to", environment, [options, &environment] {
        return WithListHint(Report(*options, environment), "muster batch list", options->common);
      });
  report->add_option("BATCH", options->batch, "The batch's number")->required();
  report->add_option("--group", options->group, "Only this group of the job");
  AddDataDirOrServer(report, &options->common);
  AddController(report, &options->common);
  AddOutput(report, &options->common, Csv::kYes);
}

}  // namespace muster::cli
