// SPDX-License-Identifier: Apache-2.0
#include "muster/input/record_parser.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/text.h"
#include "muster/input/format.h"
#include "muster/input/json_line.h"
#include "muster/input/suspicious_bytes.h"

namespace muster::input {

namespace {

std::vector<std::string> Members(const InputFormat& format) {
  std::vector<std::string> members;
  for (const ColumnSource& column : format.columns) {
    const std::string* member = std::get_if<std::string>(&column.source);
    members.push_back(member != nullptr ? *member : column.name);
  }
  return members;
}

CsvShape ShapeOf(const InputFormat& format, std::vector<int> positions, int header_fields) {
  CsvShape shape{.delimiter = format.delimiter,
                 .max_record_bytes = format.max_record_bytes,
                 .quotes = format.quotes,
                 .multiline = format.multiline};
  const absl::Status sound = RecordParser::CheckPositions(format, positions, header_fields);
  if (sound.ok()) {
    shape.positions = std::move(positions);
    shape.fields = header_fields;
  } else {
    shape.refusal = std::string(sound.message());
  }
  return shape;
}

// Gives `take` each line of `slice` that is not empty, without its line end.
template <typename Take>
void ForEachLine(absl::string_view slice, int64_t line, Take take) {
  for (; !slice.empty(); ++line) {
    const size_t bytes = std::min(slice.find('\n'), slice.size() - 1) + 1;
    const absl::string_view text = WithoutLineEnd(slice.substr(0, bytes));
    if (!text.empty()) take(text, line);
    slice.remove_prefix(bytes);
  }
}

}  // namespace

RecordParser::RecordParser(InputFormat format, std::vector<int> positions, int header_fields)
    : format_(std::move(format)),
      csv_(ShapeOf(format_, std::move(positions), header_fields)),
      members_(Members(format_)) {}

RecordParser::RecordParser(InputFormat format, const Header& header)
    : RecordParser(std::move(format), header.positions, static_cast<int>(header.fields.size())) {}

absl::Status RecordParser::CheckPositions(const InputFormat& format,
                                          const std::vector<int>& positions, int header_fields) {
  if (format.kind != InputFormat::Kind::kCsv) return absl::OkStatus();
  if (positions.size() != format.columns.size()) {
    return absl::DataLossError(absl::StrCat("the item names ", positions.size(),
                                            " fields, the job has ", format.columns.size(),
                                            " columns"));
  }
  for (const int position : positions) {
    if (position < 0 || position == std::numeric_limits<int>::max() ||
        (header_fields != 0 && position >= header_fields)) {
      return absl::DataLossError(
          absl::StrCat("the item names field ", position, " from 0, which no record has"));
    }
  }
  return absl::OkStatus();
}

void RecordParser::Parse(absl::string_view slice, int64_t first_line, ParsedRecords* out) const {
  out->Reset(static_cast<int>(format_.columns.size()), slice.size());
  if (format_.kind == InputFormat::Kind::kCsv) {
    CsvParser(&csv_, slice, first_line, out).Parse();
  } else {
    ParseLines(slice, first_line, out);
  }
}

void RecordParser::ParseLines(absl::string_view slice, int64_t first_line,
                              ParsedRecords* out) const {
  JsonLineParser json(&members_);
  char* room = out->room.get();
  const bool suspicious = IsSuspicious(slice);
  const bool is_json = format_.kind == InputFormat::Kind::kJsonl;
  ForEachLine(slice, first_line, [&](absl::string_view text, int64_t line) {
    const size_t first_field = out->fields.size();
    out->fields.resize(first_field + format_.columns.size());
    absl::string_view* fields = out->fields.data() + first_field;
    std::string refusal;
    if (const size_t bad = base::FirstInvalidUtf8(text); bad != text.size()) {
      refusal = absl::StrCat("not UTF-8: byte ", bad + 1, " of the line");
    } else if (suspicious) {
      // A CR may stand between the tokens of JSON.
      refusal = SuspiciousByte(text, is_json ? absl::string_view::npos : text.find('\r'), "line");
    }
    if (is_json && refusal.empty()) refusal = json.Parse(text, fields, &room);
    if (!is_json) std::fill(fields, out->fields.data() + out->fields.size(), text);
    const int ordinal = static_cast<int>(out->total());
    if (refusal.empty()) {
      out->records.push_back({ordinal, line});
    } else {
      out->fields.resize(first_field);
      out->rejected.push_back({ordinal, line, std::move(refusal)});
    }
  });
}

std::string OversizedReason(uint64_t record_bytes, uint64_t limit_bytes) {
  return absl::StrCat("the record has ", record_bytes, " bytes; at most ", limit_bytes,
                      " are allowed");
}

}  // namespace muster::input
