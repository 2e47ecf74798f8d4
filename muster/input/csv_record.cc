// SPDX-License-Identifier: Apache-2.0
#include "muster/input/csv_record.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster::input {

namespace {

constexpr size_t kNone = absl::string_view::npos;

// Walks a record field by field.
class Walk {
 public:
  Walk(absl::string_view text, char delimiter)
      : text_(text),
        delimiter_(delimiter),
        first_line_end_(std::min(text.find('\n'), text.size())) {}

  // False when the quotes do not work out; `at_` is then where that shows.
  bool ToEndOfRecord() {
    do {
      ++field_;
      if (!(at_ < text_.size() && text_[at_] == '"' ? QuotedField() : PlainField())) return false;
    } while (ConsumeDelimiter());
    return true;
  }

  size_t at() const { return at_; }
  bool on_first_line() const { return at_ <= first_line_end_; }
  int field() const { return on_first_line() ? field_ : open_field_; }

 private:
  bool PlainField() {
    for (; at_ < text_.size() && text_[at_] != delimiter_ && text_[at_] != '\n'; ++at_) {
      plain_quotes_ |= text_[at_] == '"';
    }
    return !(plain_quotes_ && open_field_ != 0);
  }

  bool QuotedField() {
    const size_t close = FindClosingQuote(text_, at_ + 1);
    if (open_field_ == 0 && close > first_line_end_) open_field_ = field_;
    at_ = close == kNone ? text_.size() + 1 : close + 1;
    return at_ <= text_.size() && !(plain_quotes_ && open_field_ != 0) && AtEndOfField();
  }

  bool AtEndOfField() const {
    const absl::string_view rest = text_.substr(at_);
    return rest.empty() || rest[0] == delimiter_ || rest[0] == '\n' || rest == "\r" ||
           rest.substr(0, 2) == "\r\n";
  }

  bool ConsumeDelimiter() {
    if (at_ >= text_.size() || text_[at_] != delimiter_) return false;
    ++at_;
    return true;
  }

  const absl::string_view text_;
  const char delimiter_;
  const size_t first_line_end_;
  size_t at_ = 0;
  int field_ = 0;
  int open_field_ = 0;  // the field whose quotes hold the first newline
  bool plain_quotes_ = false;
};

CsvRecord Extent(absl::string_view text, size_t newline) {
  CsvRecord record;
  record.bytes = std::min(newline, text.size() - 1) + 1;
  record.text = WithoutLineEnd(text.substr(0, record.bytes)).size();
  return record;
}

}  // namespace

CsvRecord MeasureLine(absl::string_view text, size_t max_bytes) {
  text = text.substr(0, max_bytes + 2);
  const size_t newline = text.find('\n');
  CsvRecord line = Extent(text, newline);
  if (std::min(newline, text.size()) > max_bytes) line.fault = CsvRecord::Fault::kTooLong;
  return line;
}

CsvRecord MeasureCsvRecord(absl::string_view text, char delimiter, size_t max_bytes,
                           bool multiline) {
  CsvRecord first_line = MeasureLine(text, max_bytes);
  if (first_line.fault != CsvRecord::Fault::kNone) return first_line;
  text = text.substr(0, max_bytes + 2);
  if (!multiline) text = text.substr(0, first_line.bytes);
  Walk walk(text, delimiter);
  const bool closed = walk.ToEndOfRecord();
  const size_t end = walk.at() < text.size() ? text.find('\n', walk.at()) : kNone;
  if (!closed || std::min(end, text.size()) > max_bytes) {
    first_line.field = walk.field();
    const auto unclosed =
        multiline ? CsvRecord::Fault::kUnclosedQuote : CsvRecord::Fault::kUnclosedInLine;
    first_line.fault =
        closed || !walk.on_first_line() ? unclosed : CsvRecord::Fault::kTextAfterQuote;
    return first_line;
  }
  CsvRecord record = Extent(text, end);
  const absl::string_view inner = text.substr(0, record.text);
  record.lines += std::count(inner.begin(), inner.end(), '\n');
  return record;
}

bool HasUnclosedQuote(absl::string_view record, const InputFormat& format) {
  if (format.kind != InputFormat::Kind::kCsv || !format.quotes || !format.multiline) return false;
  return MeasureCsvRecord(record, format.delimiter, format.max_record_bytes).fault ==
         CsvRecord::Fault::kUnclosedQuote;
}

std::string FaultReason(const CsvRecord& record) {
  switch (record.fault) {
    case CsvRecord::Fault::kNone:
      return "";
    case CsvRecord::Fault::kUnclosedQuote:
      return absl::StrCat("field ", record.field, " opens a quote that is never closed");
    case CsvRecord::Fault::kUnclosedInLine:
      return absl::StrCat("field ", record.field, " opens a quote that its line does not close");
    case CsvRecord::Fault::kTextAfterQuote:
      return absl::StrCat("text follows the closing quote of field ", record.field);
    case CsvRecord::Fault::kTooLong:
      return "the record is too long";
  }
  return "";
}

size_t UnescapeQuotes(absl::string_view quoted, char* out) {
  char* const begin = out;
  for (size_t i = 0; i < quoted.size(); ++i) {
    *out++ = quoted[i];
    if (quoted[i] == '"') ++i;
  }
  return static_cast<size_t>(out - begin);
}

size_t FindClosingQuote(absl::string_view text, size_t from) {
  size_t quote = text.find('"', from);
  while (quote != kNone && quote + 1 < text.size() && text[quote + 1] == '"') {
    quote = text.find('"', quote + 2);
  }
  return quote;
}

namespace {

absl::string_view Unquote(absl::string_view quoted, char** room) {
  if (quoted.find('"') == absl::string_view::npos) return quoted;
  const absl::string_view plain(*room, UnescapeQuotes(quoted, *room));
  *room += plain.size();
  return plain;
}

}  // namespace

void SplitCsvFields(absl::string_view record, char delimiter, char** room,
                    std::vector<absl::string_view>* fields, bool quotes) {
  size_t at = 0;
  while (true) {
    size_t end;
    if (quotes && at < record.size() && record[at] == '"') {
      const size_t close = FindClosingQuote(record, at + 1);
      fields->push_back(Unquote(record.substr(at + 1, close - at - 1), room));
      end = close + 1;
    } else {
      end = std::min(record.find(delimiter, at), record.size());
      fields->push_back(record.substr(at, end - at));
    }
    if (end >= record.size()) return;
    at = end + 1;
  }
}

size_t FindLoneCr(absl::string_view record, char delimiter, bool quotes) {
  size_t at = 0;
  while (true) {
    size_t end;
    if (quotes && at < record.size() && record[at] == '"') {
      end = FindClosingQuote(record, at + 1) + 1;
    } else {
      end = std::min(record.find(delimiter, at), record.size());
      const size_t cr = record.find('\r', at);
      if (cr < end) return cr;
    }
    if (end >= record.size()) return kNone;
    at = end + 1;
  }
}

}  // namespace muster::input
