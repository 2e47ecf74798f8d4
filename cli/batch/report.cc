// muster report BATCH

#include "cli/batch/report.h"

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
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
#include "muster/base/status.h"
#include "muster/report/remote/remote_report_client.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

nlohmann::ordered_json Outcome::Json() const {
  return {
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
}

std::string Outcome::Text() const {
  const auto number = [](int64_t value) { return Grouped(static_cast<uint64_t>(value)); };
  return absl::StrCat(
      "batch ", batch, ": ", Counted(static_cast<uint64_t>(counted.transactions), "transaction"),
      " = ", number(counted.aggregated), " aggregated + ", number(counted.rejected), " rejected + ",
      number(counted.dead_lettered), " dead-lettered\n",
      absl::StrFormat("%s in %.2f s, %s transactions/s\n",
                      Counted(static_cast<uint64_t>(counted.items()), "item"), seconds,
                      Grouped(static_cast<uint64_t>(transactions_per_second))));
}

std::string Outcome::Losses(const job::Tolerance& tolerate, const std::string& where) const {
  std::string lines;
  if (counted.rejected > 0) {
    const bool tolerated = tolerate.Allows(counted.rejected, counted.transactions);
    absl::StrAppend(&lines, Counted(static_cast<uint64_t>(counted.rejected), "transaction"),
                    counted.rejected == 1 ? " was" : " were", " rejected",
                    tolerated ? " (tolerated)" : "", ": muster batch get ", batch, where, "\n");
  }
  if (counted.items_dead > 0) {
    absl::StrAppend(&lines, Counted(static_cast<uint64_t>(counted.items_dead), "item"),
                    counted.items_dead == 1 ? " was" : " were", " given up: muster queue list",
                    where, ", muster queue poison QUEUE", where, "\n");
  }
  return lines;
}

int Outcome::Code(const job::Tolerance& tolerate) const {
  if (!complete) return kInterrupted;
  if (counted.dead_lettered > 0 || !tolerate.Allows(counted.rejected, counted.transactions)) {
    return kPartial;
  }
  return late ? kDeadlineMissed : kOk;
}

namespace {

class LocalReport final : public ReportView {
 public:
  LocalReport(std::unique_ptr<report::ReportStore> store,
              std::unique_ptr<report::ReportReader> reader)
      : store_(std::move(store)), reader_(std::move(reader)) {}

  absl::Status Visit(uint64_t batch, const std::string& group,
                     const report::RowVisitor& visitor) override {
    return report::VisitRows(*reader_, batch, group, visitor);
  }

 private:
  const std::unique_ptr<report::ReportStore> store_;
  const std::unique_ptr<report::ReportReader> reader_;
};

class RemoteReport final : public ReportView {
 public:
  explicit RemoteReport(std::unique_ptr<MeshClient> mesh) : mesh_(std::move(mesh)) {}

  absl::Status Visit(uint64_t batch, const std::string& group,
                     const report::RowVisitor& visitor) override {
    MUSTER_ASSIGN_OR_RETURN(const Peer controller, mesh_->Controller());
    report::remote::ReadRequest request;
    request.batch = batch;
    request.group = group;
    request.timeout = mesh_->options().timeout.value_or(report::remote::kDefaultReportTimeout);
    return Explain(report::remote::ReadReport(controller.channel, request, visitor), controller);
  }

 private:
  const std::unique_ptr<MeshClient> mesh_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ReportView>> OpenReportView(const CommonOptions& options,
                                                           const Environment& environment) {
  if (options.server.named()) {
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<MeshClient> mesh, MeshClient::Open(options.server));
    return std::make_unique<RemoteReport>(std::move(mesh));
  }
  MUSTER_RETURN_IF_ERROR(RequireDataDir(options.data_dir));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<report::ReportStore> store,
                          backend::OpenReportStore(backend::DataDirUrls(options.data_dir).report,
                                                   backend::Mode::kReadOnly, environment.clock));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<report::ReportReader> reader, store->Read());
  return std::make_unique<LocalReport>(std::move(store), std::move(reader));
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
    End();
    table_ = EmptyTable(group);
    group_ = group.name;
    rows_ = 0;
  }

  void Add(const GroupRow& row) {
    if (request_.max_rows < 0 || rows_ < request_.max_rows) table_->AddRow(Cells(row));
    ++rows_;
  }

  void End() {
    if (!table_.has_value()) return;
    out_ << (is_first_ ? "" : "\n") << group_ << "\n\n";
    is_first_ = false;
    table_->PrintTo(out_);
    if (request_.max_rows < 0 || rows_ <= request_.max_rows) return;
    out_ << "… and " << Grouped(static_cast<uint64_t>(rows_ - request_.max_rows))
         << " more: muster report " << request_.batch << " --group " << group_ << request_.where
         << "\n";
  }

 private:
  const ReportRequest& request_;
  std::ostream& out_;
  bool is_first_ = true;
  std::string group_;
  std::optional<Table> table_;
  int64_t rows_ = 0;
};

absl::Status WriteTables(ReportView& view, const ReportRequest& request, std::ostream& out) {
  TableWriter writer(&request, &out);
  report::RowVisitor visitor;
  visitor.on_group = [&writer](const GroupShape& group) {
    writer.Begin(group);
    return absl::OkStatus();
  };
  visitor.on_row = [&writer](const GroupRow& row) { writer.Add(row); };
  MUSTER_RETURN_IF_ERROR(view.Visit(request.batch, request.group, visitor));
  writer.End();
  return absl::OkStatus();
}

absl::Status WriteCsv(ReportView& view, const ReportRequest& request, std::ostream& out) {
  std::vector<std::string> names;
  Table table;
  report::RowVisitor visitor;
  visitor.on_group = [&](const GroupShape& group) {
    if (names.empty()) table = EmptyTable(group);
    names.push_back(group.name);
    return absl::OkStatus();
  };
  visitor.on_row = [&](const GroupRow& row) {
    if (names.size() == 1) table.AddRow(Cells(row));
  };
  MUSTER_RETURN_IF_ERROR(view.Visit(request.batch, request.group, visitor));
  if (names.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("CSV holds one table: choose one with --group: ", absl::StrJoin(names, ", ")));
  }
  table.PrintCsvTo(out);
  return absl::OkStatus();
}

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

  void End() {
    if (!group_.has_value()) BeginReport();
    out_ << (group_.has_value() ? "]}" : "") << "]}\n";
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

  void End() {
    if (group_.has_value()) {
      EndGroup();
    } else {
      out_ << "batch: " << batch_ << "\ngroups: []\n";
    }
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
absl::Status WriteStructured(ReportView& view, const ReportRequest& request, std::ostream& out) {
  Writer writer(request.batch, &out);
  report::RowVisitor visitor;
  visitor.on_group = [&writer](const GroupShape& group) {
    writer.Begin(group);
    return absl::OkStatus();
  };
  visitor.on_row = [&writer](const GroupRow& row) { writer.Add(row); };
  MUSTER_RETURN_IF_ERROR(view.Visit(request.batch, request.group, visitor));
  writer.End();
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteReport(ReportView& view, const ReportRequest& request, std::ostream& out) {
  switch (request.format) {
    case OutputFormat::kTable:
      return WriteTables(view, request, out);
    case OutputFormat::kJson:
      return WriteStructured<JsonWriter>(view, request, out);
    case OutputFormat::kYaml:
      return WriteStructured<YamlWriter>(view, request, out);
    case OutputFormat::kCsv:
      return WriteCsv(view, request, out);
  }
  return absl::InternalError("unknown output format");
}

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
