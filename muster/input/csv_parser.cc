// SPDX-License-Identifier: Apache-2.0
#include "muster/input/csv_parser.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/text.h"
#include "muster/input/byte_scan.h"
#include "muster/input/csv_record.h"
#include "muster/input/format.h"
#include "muster/input/suspicious_bytes.h"

namespace muster::input {
namespace {

std::string FieldsInWords(size_t count) {
  return absl::StrCat(count, count == 1 ? " field" : " fields");
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

}  // namespace muster::input
