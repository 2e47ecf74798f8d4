// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/input/reference_reader.h"

#include <algorithm>

namespace muster::input {
namespace {

// One CSV record, by the book. Answers false when the quotes do not work out.
class RecordByTheBook {
 public:
  RecordByTheBook(const std::string& text, size_t begin, const InputFormat& format)
      : text_(text), at_(begin), format_(format), delimiter_(format.delimiter) {}

  bool Read() {
    while (true) {
      fields.emplace_back();
      if (format_.quotes && at_ < text_.size() && text_[at_] == '"') {
        if (!Quoted()) return false;
      } else {
        while (at_ < text_.size() && text_[at_] != delimiter_ && text_[at_] != '\n') {
          plain_quote_ |= text_[at_] == '"';
          lone_cr |= text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n';
          fields.back() += text_[at_++];
        }
      }
      if (newline_inside && (plain_quote_ || !format_.multiline)) return false;
      if (at_ >= text_.size() || text_[at_] == '\n') break;
      ++at_;  // the delimiter
    }
    std::string& last = fields.back();
    if (!last_quoted_ && !last.empty() && last.back() == '\r') last.pop_back();
    text_end = at_;
    return true;
  }

  std::vector<std::string> fields;
  size_t text_end = 0;
  bool newline_inside = false;
  bool lone_cr = false;

 private:
  bool Quoted() {
    ++at_;
    while (at_ < text_.size()) {
      if (text_[at_] == '"' && at_ + 1 < text_.size() && text_[at_ + 1] == '"')
        ++at_;
      else if (text_[at_] == '"')
        break;
      newline_inside |= text_[at_] == '\n';
      fields.back() += text_[at_++];
    }
    if (at_ >= text_.size()) return false;
    ++at_;
    last_quoted_ = false;
    if (at_ < text_.size() && text_[at_] == '\r' &&
        (at_ + 1 == text_.size() || text_[at_ + 1] == '\n')) {
      ++at_;
    }
    last_quoted_ = at_ >= text_.size() || text_[at_] == '\n';
    return last_quoted_ || (text_[at_] == delimiter_ && text_[at_ - 1] != '\r');
  }

  const std::string& text_;
  size_t at_;
  const InputFormat& format_;
  const char delimiter_;
  bool plain_quote_ = false;
  bool last_quoted_ = false;
};

void ReadCsv(const std::string& text, const InputFormat& format, ReferenceRecord* record) {
  RecordByTheBook book(text, record->begin, format);
  const bool sound = book.Read();
  record->broken = !sound && !record->oversized;
  if (!sound) return;
  record->oversized = book.text_end - record->begin > format.max_record_bytes;
  record->fields = book.fields;
  record->end = std::min(book.text_end + 1, text.size());
  const std::string bytes = text.substr(record->begin, record->end - record->begin);
  record->suspicious = book.lone_cr || bytes.find('\0') != std::string::npos;
  record->lines =
      1 + static_cast<size_t>(std::count(
              bytes.begin(),
              bytes.begin() + static_cast<std::ptrdiff_t>(book.text_end - record->begin), '\n'));
}

}  // namespace

std::vector<ReferenceRecord> ReadByReference(const std::string& text, const InputFormat& format) {
  std::vector<ReferenceRecord> records;
  size_t begin = 0;
  int64_t line = 1;
  while (begin < text.size()) {
    const size_t newline = std::min(text.find('\n', begin), text.size());
    const std::string first_line = text.substr(begin, newline - begin);
    ReferenceRecord record;
    record.begin = begin;
    record.end = std::min(newline + 1, text.size());
    record.line = line;
    const bool empty = first_line.empty() || first_line == "\r";
    record.oversized = first_line.size() > format.max_record_bytes;
    if (!empty && format.kind == InputFormat::Kind::kCsv) {
      ReadCsv(text, format, &record);
    }
    const auto from = text.begin() + static_cast<std::ptrdiff_t>(begin);
    line += std::count(from, text.begin() + static_cast<std::ptrdiff_t>(record.end), '\n');
    begin = record.end;
    if (!empty) records.push_back(record);
  }
  return records;
}

std::vector<ReferenceSlice> SliceByReference(const std::vector<ReferenceRecord>& records,
                                             size_t transactions, size_t max_bytes) {
  std::vector<ReferenceSlice> slices;
  for (const ReferenceRecord& record : records) {
    const bool fits = !slices.empty() && !slices.back().oversized && !record.oversized &&
                      slices.back().records < transactions &&
                      record.end - slices.back().begin <= max_bytes;
    if (!fits) slices.push_back({.begin = record.begin, .oversized = record.oversized});
    slices.back().end = record.end;
    ++slices.back().records;
    if (record.lines == 1) continue;
    ++slices.back().multiline_records;
    slices.back().multiline_lines += record.lines;
  }
  return slices;
}

}  // namespace muster::input
