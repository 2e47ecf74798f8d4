// SPDX-License-Identifier: Apache-2.0

// The section `input` of a job file.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/text.h"
#include "muster/job/job_file.h"
#include "muster/job/limits.h"
#include "muster/job/sections.h"

namespace muster::job {

namespace {

using input::ColumnSource;
using input::InputFormat;
using yaml::YamlMap;
using yaml::YamlValue;

bool ReadKind(const YamlValue& value, InputFormat::Kind* kind) {
  const std::vector<std::string> kinds = {"csv", "jsonl", "lines"};
  const auto found = std::find(kinds.begin(), kinds.end(), value.Raw());
  if (!value.present()) return false;
  if (found == kinds.end()) {
    value.MustBe("csv, jsonl or lines");
    return false;
  }
  *kind = static_cast<InputFormat::Kind>(found - kinds.begin());
  return true;
}

void ReadDelimiter(const YamlValue& value, char* delimiter) {
  if (!value.present()) return;
  const std::string text = value.Raw();
  const bool fits = text.size() == 1 && text[0] != '"' &&
                    (text[0] == '\t' || text[0] == ' ' || absl::ascii_ispunct(text[0]));
  if (!fits) return value.MustBe("one character: a comma, semicolon, tab (\"\\t\"), bar …");
  *delimiter = text[0];
}

// The place of a field in a CSV without header, the text of a header, or the name of a member.
bool ReadSource(const YamlValue& value, bool by_position, ColumnSource* column) {
  if (by_position) {
    int64_t position = 0;
    const bool read = value.ReadInt(&position, 1, kMaxColumns);
    column->source = static_cast<int>(position);
    return read;
  }
  std::string text;
  const bool read = value.ReadText(&text);
  column->source = std::move(text);
  return read;
}

// `columns: {quantity: Quantity}`, or `columns: [Quantity]`.
std::vector<std::pair<YamlValue, ColumnSource>> ReadColumns(const YamlValue& value,
                                                            bool by_position) {
  std::vector<std::pair<YamlValue, ColumnSource>> columns;
  ColumnSource column;
  if (value.IsList() && !by_position) {
    for (const YamlValue& entry : value.List(1, kMaxColumns)) {
      if (!ReadSource(entry, by_position, &column)) continue;
      column.name = std::get<std::string>(column.source);
      columns.emplace_back(entry, column);
    }
    return columns;
  }
  for (const auto& [name, source] : value.Entries(1, kMaxColumns)) {
    const bool named = name.ReadText(&column.name);
    if (ReadSource(source, by_position, &column) && named) columns.emplace_back(source, column);
  }
  return columns;
}

void KeepDistinct(const std::vector<std::pair<YamlValue, ColumnSource>>& columns,
                  std::vector<ColumnSource>* kept) {
  for (const auto& [value, column] : columns) {
    const auto& source = column.source;
    const auto same = std::find_if(kept->begin(), kept->end(), [&](const ColumnSource& other) {
      return other.source == source;
    });
    if (same != kept->end()) {
      value.Problem(absl::StrCat("is the same field as the column ", base::Quoted(same->name)));
    } else {
      kept->push_back(column);
    }
  }
}

// A value is read once: as a whole, or by the members within it.
void RefuseNested(const YamlValue& value, const std::vector<ColumnSource>& columns) {
  for (const ColumnSource& inner : columns) {
    for (const ColumnSource& outer : columns) {
      const auto& within = std::get<std::string>(inner.source);
      if (!absl::StartsWith(within, absl::StrCat(std::get<std::string>(outer.source), ".")))
        continue;
      value.Problem(absl::StrCat("the member ", base::Quoted(within),
                                 " lies within that of the column ", base::Quoted(outer.name)));
    }
  }
}

// `optional: [coupon]`: columns whose member few records have.
void ReadOptional(const YamlValue& value, std::vector<ColumnSource>* columns) {
  if (!value.present()) return;
  std::vector<std::string> names;
  for (const ColumnSource& column : *columns) names.push_back(column.name);
  for (const YamlValue& entry : value.List(1, kMaxColumns)) {
    std::string name;
    if (!entry.ReadText(&name)) continue;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) {
      (*columns)[static_cast<size_t>(found - names.begin())].optional = true;
    } else if (!names.empty()) {
      entry.Problem(absl::StrCat("the job has no column ", base::Quoted(name),
                                 base::DidYouMean(name, names),
                                 " (its columns: ", base::ListNames(names), ")"));
    }
  }
}

// `quote: none` and `multiline`, of csv.
void ReadQuotes(const YamlMap& map, InputFormat* input) {
  const YamlValue quote = map.Optional("quote");
  bool is_none = false;
  if (quote.present()) quote.ReadWord({"double", "none"}, &is_none);
  input->quotes = !is_none;
  const YamlValue multiline = map.Optional("multiline");
  if (!multiline.present() || !multiline.ReadBool(&input->multiline)) return;
  input->expects_multiline = input->multiline;
  if (is_none && input->multiline) {
    multiline.Problem("needs quotes, and `quote` is none: without them a line is a record");
  }
}

void RefuseFor(const char* format, const char* why, const YamlValue& value) {
  if (value.present()) value.Problem(absl::StrCat("has no meaning for ", format, ": ", why));
}

}  // namespace

void ReadInput(const YamlValue& section, InputFormat* input) {
  const YamlMap map(section, JobFileKeys().at(kInput));
  const bool known = ReadKind(map.Required("format"), &input->kind);
  if (known && input->kind == InputFormat::Kind::kLines) {
    RefuseFor("lines", "a line is one column, named line", map.Optional("columns"));
    input->columns = {{"line", 1}};
  }
  if (known && input->kind != InputFormat::Kind::kJsonl) {
    RefuseFor(input->kind == InputFormat::Kind::kCsv ? "csv" : "lines",
              "only members of JSON objects may be missing", map.Optional("optional"));
  }
  if (known && input->kind != InputFormat::Kind::kCsv) {
    RefuseFor(input->kind == InputFormat::Kind::kJsonl ? "jsonl" : "lines", "only csv has a header",
              map.Optional("header"));
    RefuseFor(input->kind == InputFormat::Kind::kJsonl ? "jsonl" : "lines", "only csv has one",
              map.Optional("delimiter"));
    for (const char* key : {"quote", "multiline"}) {
      RefuseFor(input->kind == InputFormat::Kind::kJsonl ? "jsonl" : "lines",
                "only csv has quoted fields", map.Optional(key));
    }
    input->header = false;
  } else {
    ReadQuotes(map, input);
    map.Optional("header").ReadBool(&input->header);
    ReadDelimiter(map.Optional("delimiter"), &input->delimiter);
  }
  if (!known || input->kind == InputFormat::Kind::kLines) return;
  const bool by_position = input->kind == InputFormat::Kind::kCsv && !input->header;
  KeepDistinct(ReadColumns(map.Required("columns"), by_position), &input->columns);
  if (input->kind == InputFormat::Kind::kJsonl) {
    RefuseNested(map.Required("columns"), input->columns);
    ReadOptional(map.Optional("optional"), &input->columns);
  }
}

}  // namespace muster::job
