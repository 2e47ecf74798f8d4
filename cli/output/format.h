// SPDX-License-Identifier: Apache-2.0

// Table: rows for people, JSON or CSV for programs, from the same cells.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/output/environment.h"
#include "nlohmann/json_fwd.hpp"

namespace google::protobuf {
class Timestamp;
}

namespace muster::cli {

enum class Align { kLeft, kRight };

class Table {
 public:
  // Numbers are right-aligned.
  void AddColumn(std::string title, Align align = Align::kLeft);
  void AddColumns(std::initializer_list<const char*> titles, Align align = Align::kLeft);
  // As many cells as columns.
  void AddRow(std::vector<std::string> cells);

  // Columns padded to the widest cell, two spaces between them; titles in capitals. Control
  // characters in cells are shown as "?", so that data cannot move the cursor.
  void PrintTo(std::ostream& out) const;
  // RFC 4180, with a header.
  void PrintCsvTo(std::ostream& out) const;

 private:
  struct Column {
    std::string title;
    Align align;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A field of a CSV, quoted where RFC 4180 asks for it.
std::string CsvField(absl::string_view text);

// `text` with control characters replaced by "?".
std::string Printable(absl::string_view text);

// 541909 → "541,909".
std::string Grouped(uint64_t number);
// "1 item", "541,909 items".
std::string Counted(uint64_t number, absl::string_view thing);
// RFC 3339, UTC, milliseconds.
std::string Rfc3339(absl::Time time);
// The same of a message's field; "-" and null where the message lacks it:
// TimeJson(target.has_deadline(), target.deadline()).
std::string TimeCell(bool has, const google::protobuf::Timestamp& time);
nlohmann::ordered_json TimeJson(bool has, const google::protobuf::Timestamp& time);
// The name of an enum value of a proto, in lower case and without `prefix`.
std::string EnumName(absl::string_view name, absl::string_view prefix);
// "-" where there is nothing to say.
std::string OrDash(const std::string& text);

// Structured output for programs: one JSON object or array, as JSON or as YAML.

// Whether the format is JSON or YAML.
bool IsStructured(OutputFormat format);

// JSON: on one line. YAML: one document that all readers read alike: a string that could be read as
// another type is quoted. Both end with a newline, and replace bytes that are not UTF-8.
std::string Structured(const nlohmann::ordered_json& json, OutputFormat format);
// Prints `json` if the command shall print JSON or YAML, and answers whether it shall.
bool PrintIfStructured(const nlohmann::ordered_json& json, const CommonOptions& options,
                       const Environment& environment);
// Prints `table` as a table or as CSV, or else `json`.
void PrintRows(const Table& table, const nlohmann::ordered_json& json, const CommonOptions& options,
               const Environment& environment);

// One item of a YAML sequence, indented by `indent` spaces: for output that is written item by
// item.
std::string YamlItem(const nlohmann::ordered_json& json, int indent);
// A key, or a value of one line.
std::string YamlScalar(const nlohmann::ordered_json& json);

}  // namespace muster::cli
