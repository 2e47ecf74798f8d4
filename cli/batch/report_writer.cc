#include "cli/batch/report_writer.h"

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/output/structured.h"
#include "cli/output/table.h"
#include "muster/base/status_macros.h"
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

}  // namespace muster::cli
