#include "cli/report_writer.h"

#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/table.h"
#include "muster/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using report::GroupRow;
using report::GroupShape;

absl::StatusOr<std::vector<GroupShape>> Select(report::ReportReader& reader,
                                               const ReportRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<GroupShape> groups, reader.Groups(request.batch));
  if (request.group.empty()) return groups;
  std::vector<std::string> names;
  for (GroupShape& group : groups) {
    if (group.name == request.group) return std::vector<GroupShape>{std::move(group)};
    names.push_back(group.name);
  }
  return absl::NotFoundError(absl::StrCat("batch ", request.batch, " has no group '", request.group,
                                          "'; it has ", absl::StrJoin(names, ", ")));
}

std::vector<std::string> Cells(const GroupRow& row) {
  std::vector<std::string> cells = row.keys;
  for (const base::Decimal& measure : row.measures) cells.push_back(measure.ToString());
  return cells;
}

absl::StatusOr<Table> TableOf(report::ReportReader& reader, const ReportRequest& request,
                              const GroupShape& group, int64_t* hidden) {
  Table table;
  for (const std::string& key : group.keys) table.AddColumn(key);
  for (const report::MeasureShape& measure : group.measures) {
    table.AddColumn(measure.name, Align::kRight);
  }
  int64_t rows = 0;
  MUSTER_RETURN_IF_ERROR(reader.ForEachRow(request.batch, group.name, [&](const GroupRow& row) {
    if (request.max_rows < 0 || rows < request.max_rows) table.AddRow(Cells(row));
    ++rows;
  }));
  *hidden = request.max_rows < 0 || rows <= request.max_rows ? 0 : rows - request.max_rows;
  return table;
}

absl::Status WriteTables(report::ReportReader& reader, const ReportRequest& request,
                         const std::vector<GroupShape>& groups, std::ostream& out) {
  for (size_t i = 0; i < groups.size(); ++i) {
    int64_t hidden = 0;
    MUSTER_ASSIGN_OR_RETURN(const Table table, TableOf(reader, request, groups[i], &hidden));
    out << (i > 0 ? "\n" : "") << groups[i].name << "\n\n";
    table.PrintTo(out);
    if (hidden > 0) {
      out << "… and " << Grouped(static_cast<uint64_t>(hidden)) << " more: muster report "
          << request.batch << " --group " << groups[i].name << "\n";
    }
  }
  return absl::OkStatus();
}

absl::Status WriteCsv(report::ReportReader& reader, const ReportRequest& request,
                      const std::vector<GroupShape>& groups, std::ostream& out) {
  if (groups.size() != 1) {
    std::vector<std::string> names;
    names.reserve(groups.size());
    for (const GroupShape& group : groups) names.push_back(group.name);
    return absl::InvalidArgumentError(
        absl::StrCat("CSV holds one table: choose one with --group: ", absl::StrJoin(names, ", ")));
  }
  int64_t hidden = 0;
  MUSTER_ASSIGN_OR_RETURN(const Table table, TableOf(reader, request, groups.front(), &hidden));
  table.PrintCsvTo(out);
  return absl::OkStatus();
}

std::string JsonRow(const GroupShape& group, const GroupRow& row) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (size_t i = 0; i < group.keys.size(); ++i) object[group.keys[i]] = row.keys[i];
  for (size_t i = 0; i < group.measures.size(); ++i) {
    object[group.measures[i].name] = row.measures[i].ToString();
  }
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Row by row: a report may be larger than memory should be.
absl::Status WriteJson(report::ReportReader& reader, const ReportRequest& request,
                       const std::vector<GroupShape>& groups, std::ostream& out) {
  out << "{\"batch\":" << request.batch << ",\"groups\":[";
  for (size_t i = 0; i < groups.size(); ++i) {
    out << (i > 0 ? "," : "") << "{\"name\":" << nlohmann::json(groups[i].name) << ",\"rows\":[";
    const char* separator = "";
    MUSTER_RETURN_IF_ERROR(
        reader.ForEachRow(request.batch, groups[i].name, [&](const GroupRow& row) {
          out << separator << JsonRow(groups[i], row);
          separator = ",";
        }));
    out << "]}";
  }
  out << "]}\n";
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteReport(report::ReportReader& reader, const ReportRequest& request,
                         std::ostream& out) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<GroupShape> groups, Select(reader, request));
  switch (request.format) {
    case OutputFormat::kTable:
      return WriteTables(reader, request, groups, out);
    case OutputFormat::kJson:
      return WriteJson(reader, request, groups, out);
    case OutputFormat::kCsv:
      return WriteCsv(reader, request, groups, out);
  }
  return absl::InternalError("unknown output format");
}

}  // namespace muster::cli
