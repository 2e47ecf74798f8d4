// SPDX-License-Identifier: Apache-2.0

// muster report BATCH

#include "cli/batch/report.h"

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/batch/commands.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/args/option.h"
#include "muster/backend/backend.h"
#include "muster/base/status.h"
#include "muster/report/remote/remote_report_client.h"
#include "muster/report/report_proto.h"
#include "muster/v1/report_service.grpc.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
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

// FailedPrecondition: no receipt proves what was printed. `where` is as in Outcome::Losses.
absl::Status CheckExact(const report::Progress& counted, const std::string& where) {
  if (counted.is_complete() && !counted.cancelled.has_value()) return absl::OkStatus();
  const char* const why = counted.cancelled.has_value() ? "is cancelled"
                          : counted.reopened            ? "is open again after a redrive"
                                                        : "is not complete";
  return absl::FailedPreconditionError(absl::StrCat(
      "batch ", counted.batch, " ", why, ": ",
      Counted(static_cast<uint64_t>(counted.transactions), "transaction"),
      " of it are accounted for so far; `muster batch get ", counted.batch, where, "` says more"));
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
  return CheckExact(counted,
                    options.common.server.named() ? "" : DataDirOption(options.common.data_dir));
}

}  // namespace

void AddReport(CLI::App* app, const Environment& environment) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* const report = AddCommand(
      app, "report", "Print what a batch adds up to", environment, [options, &environment] {
        return WithListHint(Report(*options, environment), "muster batch list", options->common);
      });
  args::Add(report, "BATCH", &options->batch, "The batch's number").Required();
  args::Add(report, "--group", &options->group, "Only this group of the job");
  AddDataDirOrServer(report, &options->common);
  AddController(report, &options->common);
  AddOutput(report, &options->common, Csv::kYes);
}

}  // namespace muster::cli
