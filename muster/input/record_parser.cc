// SPDX-License-Identifier: Apache-2.0
#include "muster/input/record_parser.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/text.h"
#include "muster/input/byte_scan.h"
#include "muster/input/csv.h"
#include "muster/input/format.h"
#include "muster/input/json_line.h"

namespace muster::input {

void ParsedRecords::Reset(int width, size_t bytes) {
  columns = width;
  fields.clear();
  records.clear();
  rejected.clear();
  if (room_bytes < bytes) {
    room.reset(new char[bytes]);
    room_bytes = bytes;
  }
}

namespace {

// Whether `slice` has bytes for which a record may be rejected: NUL, or a CR that no LF follows.
bool IsSuspicious(absl::string_view slice) {
  if (slice.find('\0') != absl::string_view::npos) return true;
  for (size_t cr = slice.find('\r'); cr != absl::string_view::npos; cr = slice.find('\r', cr + 1)) {
    if (cr + 1 < slice.size() && slice[cr + 1] != '\n') return true;
  }
  return false;
}

std::string FieldsInWords(size_t count) {
  return absl::StrCat(count, count == 1 ? " field" : " fields");
}

// The fault of a record of a suspicious slice; `cr` is where a CR is one. Empty: it has none.
std::string SuspiciousByte(absl::string_view record, size_t cr, absl::string_view what) {
  const size_t nul = record.find('\0');
  if (nul != absl::string_view::npos) {
    return absl::StrCat("a NUL byte: byte ", nul + 1, " of the ", what);
  }
  if (cr == absl::string_view::npos) return "";
  return absl::StrCat("a CR that no LF follows: byte ", cr + 1, " of the ", what,
                      "; lines end with LF or CRLF");
}

size_t LeastFields(const CsvShape& shape) {
  int least = shape.fields;
  for (const int position : shape.positions) least = std::max(least, position + 1);
  return static_cast<size_t>(least);
}

}  // namespace

CsvParser::CsvParser(const CsvShape* shape, absl::string_view slice, int64_t first_line,
                     ParsedRecords* out)
    : shape_(*shape),
      slice_(slice),
      ascii_(IsAscii(slice)),
      suspicious_(IsSuspicious(slice)),
      least_fields_(LeastFields(*shape)),
      line_(first_line),
      plain_(least_fields_),
      room_(out->room.get()),
      out_(out) {}

void CsvParser::Parse() {
  ByteScan<3> scan(slice_, {'\n', shape_.quotes ? '"' : '\n', shape_.delimiter});
  size_t field_begin = 0;
  size_t count = 0;
  while (begin_ < slice_.size()) {
    const size_t at = std::min(scan.Next(), slice_.size());
    if (shape_.quotes && at < slice_.size() && slice_[at] == '"') {
      begin_ += TakeQuotedRecord();
      scan.Seek(begin_);
      field_begin = begin_;
      count = 0;
      continue;
    }
    const bool in_record = at < slice_.size() && slice_[at] == shape_.delimiter;
    absl::string_view field = slice_.substr(field_begin, at - field_begin);
    if (!in_record && !field.empty() && field.back() == '\r') field.remove_suffix(1);
    if (count < plain_.size()) plain_[count] = field;
    ++count;
    field_begin = at + 1;
    if (in_record) continue;
    const absl::string_view record = WithoutLineEnd(slice_.substr(begin_, at - begin_));
    if (count > 1 || !field.empty()) Take(record, plain_.data(), count);
    begin_ = field_begin;
    count = 0;
    ++line_;
  }
}

size_t CsvParser::TakeQuotedRecord() {
  const absl::string_view rest = slice_.substr(begin_);
  CsvRecord record =
      MeasureCsvRecord(rest, shape_.delimiter, shape_.max_record_bytes, shape_.multiline);
  if (record.fault == CsvRecord::Fault::kTooLong) {
    record.bytes = std::min(rest.find('\n'), rest.size() - 1) + 1;
  }
  if (record.fault != CsvRecord::Fault::kNone) {
    Reject(FaultReason(record));
  } else {
    quoted_.clear();
    const absl::string_view text = rest.substr(0, record.text);
    SplitCsvFields(text, shape_.delimiter, &room_, &quoted_);
    Take(text, quoted_.data(), quoted_.size());
  }
  line_ += record.lines;
  return record.bytes;
}

void CsvParser::Take(absl::string_view record, const absl::string_view* fields, size_t count) {
  if (!shape_.refusal.empty()) return Reject(shape_.refusal);
  if (!ascii_) {
    const size_t bad = base::FirstInvalidUtf8(record);
    if (bad != record.size())
      return Reject(absl::StrCat("not UTF-8: byte ", bad + 1, " of the row"));
  }
  if (suspicious_) {
    std::string fault =
        SuspiciousByte(record, FindLoneCr(record, shape_.delimiter, shape_.quotes), "row");
    if (!fault.empty()) return Reject(std::move(fault));
  }
  if (shape_.fields != 0 && count != least_fields_) {
    return Reject(
        absl::StrCat("row has ", FieldsInWords(count), ", the header has ", shape_.fields));
  }
  if (count < least_fields_) {
    return Reject(
        absl::StrCat("row has ", FieldsInWords(count), ", the job reads field ", least_fields_));
  }
  out_->records.push_back({static_cast<int>(out_->total()), line_});
  for (int position : shape_.positions) {
    out_->fields.push_back(fields[static_cast<size_t>(position)]);
  }
}

void CsvParser::Reject(std::string reason) {
  out_->rejected.push_back({static_cast<int>(out_->total()), line_, std::move(reason)});
}

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
