// SPDX-License-Identifier: Apache-2.0
#include "cli/output/format.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <ostream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "muster/base/proto_time.h"
#include "muster/base/text.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

namespace {

// Columns on a terminal: code points, which is right for all but wide and combining characters.
size_t Width(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

void PrintPadded(absl::string_view text, size_t width, Align align, bool last, std::ostream& out) {
  const std::string padding(width - std::min(width, Width(text)), ' ');
  if (align == Align::kRight) out << padding;
  out << std::string(text);
  if (align == Align::kLeft && !last) out << padding;
}

}  // namespace

std::string CsvField(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string Printable(absl::string_view text) { return base::Printable(text, text.size()); }

std::string Grouped(uint64_t number) {
  std::string digits = absl::StrCat(number);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return digits;
}

void Table::AddColumn(std::string title, Align align) {
  columns_.push_back({std::move(title), align});
}

void Table::AddColumns(std::initializer_list<const char*> titles, Align align) {
  for (const char* const title : titles) AddColumn(title, align);
}

void Table::AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

void Table::PrintTo(std::ostream& out) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = Width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, Width(row[i]));
    widths.push_back(width);
  }
  const auto print_row = [&](auto cell_of) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) out << "  ";
      PrintPadded(cell_of(i), widths[i], columns_[i].align, i + 1 == columns_.size(), out);
    }
    out << "\n";
  };
  print_row([&](size_t i) { return absl::AsciiStrToUpper(columns_[i].title); });
  for (const auto& row : rows_) {
    print_row([&](size_t i) { return Printable(row[i]); });
  }
}

void Table::PrintCsvTo(std::ostream& out) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    out << (i > 0 ? "," : "") << CsvField(columns_[i].title);
  }
  out << "\n";
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) out << (i > 0 ? "," : "") << CsvField(row[i]);
    out << "\n";
  }
}

std::string Counted(uint64_t number, absl::string_view thing) {
  return absl::StrCat(Grouped(number), " ", thing, number == 1 ? "" : "s");
}

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

std::string TimeCell(bool has, const google::protobuf::Timestamp& time) {
  return has ? Rfc3339(base::FromProto(time)) : "-";
}

nlohmann::ordered_json TimeJson(bool has, const google::protobuf::Timestamp& time) {
  return has ? nlohmann::ordered_json(Rfc3339(base::FromProto(time))) : nlohmann::ordered_json();
}

std::string EnumName(absl::string_view name, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

namespace {

using nlohmann::ordered_json;

// What some reader takes for a truth value or for nothing.
constexpr std::array<absl::string_view, 9> kYamlWords = {"y",   "n",    "yes",   "no",  "on",
                                                         "off", "true", "false", "null"};

std::string JsonLine(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// A word: it begins with a letter, so that it is no number, time or mark in any version of YAML.
bool IsYamlWord(absl::string_view text) {
  if (text.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(text[0]))) return false;
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_-./", c);
  });
  return plain &&
         std::none_of(kYamlWords.begin(), kYamlWords.end(), [text](absl::string_view word) {
           return absl::EqualsIgnoreCase(text, word);
         });
}

// What JSON may have in a string as it is, and YAML may not: DEL, U+0080 to U+009F, U+FFFE and
// U+FFFF; and U+2028 and U+2029, which some readers take for the end of a line.
std::string EscapeForYaml(absl::string_view json) {
  std::string yaml;
  for (size_t i = 0; i < json.size(); ++i) {
    const auto at = [&](size_t k) {
      return i + k < json.size() ? static_cast<uint8_t>(json[i + k]) : uint8_t{0};
    };
    if (at(0) == 0x7f) {
      yaml += "\\x7f";
    } else if (at(0) == 0xc2 && at(1) < 0xa0) {
      absl::StrAppendFormat(&yaml, "\\x%02x", at(1));
      i += 1;
    } else if (at(0) == 0xe2 && at(1) == 0x80 && (at(2) == 0xa8 || at(2) == 0xa9)) {
      absl::StrAppendFormat(&yaml, "\\u20%02x", at(2) - 0x80);
      i += 2;
    } else if (at(0) == 0xef && at(1) == 0xbf && at(2) >= 0xbe) {
      absl::StrAppendFormat(&yaml, "\\uff%02x", at(2) + 0x40);
      i += 2;
    } else {
      yaml += json[i];
    }
  }
  return yaml;
}

// Readers of YAML 1.1 see no number in 1e+20.
std::string YamlNumber(const ordered_json& json) {
  std::string text = json.dump();
  const size_t exponent = text.find('e');
  if (exponent != std::string::npos && !absl::StrContains(text, '.')) text.insert(exponent, ".0");
  return text;
}

bool IsYamlBlock(const ordered_json& json) { return json.is_structured() && !json.empty(); }

void AppendYaml(const ordered_json& json, int indent, std::string* out);

void AppendYamlItem(const ordered_json& json, int indent, std::string* out) {
  const std::string spaces(static_cast<size_t>(indent), ' ');
  if (!IsYamlBlock(json)) {
    absl::StrAppend(out, spaces, "- ", YamlScalar(json), "\n");
    return;
  }
  std::string block;
  AppendYaml(json, indent + 2, &block);
  absl::StrAppend(out, spaces, "- ", block.substr(static_cast<size_t>(indent) + 2));
}

void AppendYaml(const ordered_json& json, int indent, std::string* out) {
  if (!IsYamlBlock(json)) {
    absl::StrAppend(out, YamlScalar(json), "\n");
    return;
  }
  if (json.is_array()) {
    for (const ordered_json& item : json) AppendYamlItem(item, indent, out);
    return;
  }
  for (const auto& [key, value] : json.items()) {
    absl::StrAppend(out, std::string(static_cast<size_t>(indent), ' '), YamlScalar(key), ":");
    out->append(IsYamlBlock(value) ? "\n" : " ");
    AppendYaml(value, indent + 2, out);
  }
}

}  // namespace

bool IsStructured(OutputFormat format) {
  return format == OutputFormat::kJson || format == OutputFormat::kYaml;
}

std::string YamlScalar(const ordered_json& json) {
  if (json.is_number_float()) return YamlNumber(json);
  if (!json.is_string()) return JsonLine(json);
  const std::string& text = json.get_ref<const std::string&>();
  return IsYamlWord(text) ? text : EscapeForYaml(JsonLine(json));
}

std::string YamlItem(const ordered_json& json, int indent) {
  std::string yaml;
  AppendYamlItem(json, indent, &yaml);
  return yaml;
}

std::string Structured(const ordered_json& json, OutputFormat format) {
  if (format != OutputFormat::kYaml) return absl::StrCat(JsonLine(json), "\n");
  std::string yaml;
  AppendYaml(json, 0, &yaml);
  return yaml;
}

bool PrintIfStructured(const ordered_json& json, const CommonOptions& options,
                       const Environment& environment) {
  const bool is_structured = IsStructured(options.output);
  if (is_structured) *environment.out << Structured(json, options.output);
  return is_structured;
}

void PrintRows(const Table& table, const ordered_json& json, const CommonOptions& options,
               const Environment& environment) {
  if (PrintIfStructured(json, options, environment)) return;
  if (options.output == OutputFormat::kCsv) return table.PrintCsvTo(*environment.out);
  table.PrintTo(*environment.out);
}

}  // namespace muster::cli
