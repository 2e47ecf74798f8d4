// SPDX-License-Identifier: Apache-2.0
#include "muster/input/slice_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/input/byte_scan.h"
#include "muster/input/content_kind.h"
#include "muster/input/csv_record.h"
#include "muster/input/long_record.h"

namespace muster::input {

SliceReader::SliceReader(const ByteSource* source, const InputFormat& format, SliceLimits limits,
                         SliceStart start)
    : delimiter_(format.delimiter),
      quotes_(format.kind == InputFormat::Kind::kCsv && format.quotes),
      multiline_(format.multiline),
      max_record_bytes_(format.max_record_bytes),
      limits_(limits),
      lookahead_(limits.max_bytes + format.max_record_bytes + 2),
      source_(source),
      window_(source, start.offset, std::max(limits.read_bytes, lookahead_)),
      line_(start.line) {}

absl::StatusOr<std::optional<Slice>> SliceReader::Next() {
  MUSTER_RETURN_IF_ERROR(SkipEmptyLines(&window_, &line_));
  if (window_.text().empty()) return std::optional<Slice>();
  MUSTER_ASSIGN_OR_RETURN(Run run, MeasureWindow());
  if (run.records == 0) {
    MUSTER_ASSIGN_OR_RETURN(const Slice slice, SkipLongRecord());
    return std::optional<Slice>(slice);
  }
  Slice slice;
  slice.offset = window_.offset();
  slice.length = run.bytes;
  slice.first_line = line_;
  slice.transactions = run.records;
  slice.multiline = std::move(run.multiline);
  slice.data = window_.text().substr(0, run.bytes);
  window_.Advance(run.bytes);
  line_ += run.lines;
  slice.next = {window_.offset(), line_};
  return std::optional<Slice>(slice);
}

absl::StatusOr<SliceReader::Run> SliceReader::MeasureWindow() {
  broken_lines_.clear();
  while (true) {
    Run run = Measure(window_.text());
    if (run.cut) {
      // Rare, and not done ahead: to hold the whole look-ahead always would copy much.
      MUSTER_RETURN_IF_ERROR(window_.Require(lookahead_));
      run = Measure(window_.text());
    }
    if (!run.open.has_value()) return run;
    MUSTER_ASSIGN_OR_RETURN(const std::optional<LongRecord> record,
                            FindLongRecord(*source_, window_.offset() + *run.open, delimiter_));
    if (record.has_value()) return run;  // the slice ends before it, or is it
    broken_lines_.push_back(*run.open);
  }
}

SliceReader::Run SliceReader::Measure(absl::string_view text) const {
  const char quote = quotes_ ? '"' : '\n';
  ByteScan<2> scan(text, {'\n', quote});
  Run run;
  size_t begin = 0;
  int64_t lines = 0;
  while (run.records < limits_.transactions) {
    const size_t found = scan.Next();
    Line line{found + 1, 1};
    if (found >= text.size()) {
      line = LastLine(text, begin);
    } else if (quotes_ && text[found] == '"') {
      line = LineWithQuotes(text, begin);
      scan.Seek(std::max(begin, line.end));
    } else if (found - begin > max_record_bytes_) {
      break;
    }
    run.cut = line.cut;
    if (line.open) run.open = begin;
    if (line.end == 0) break;
    const absl::string_view record = text.substr(begin, line.end - begin);
    begin = line.end;
    const int64_t first_line = line_ + lines;
    lines += line.lines;
    if (IsEmptyLine(record)) continue;
    if (run.records > 0 && line.end > limits_.max_bytes) break;
    ++run.records;
    run.bytes = line.end;
    run.lines = lines;
    if (line.lines > 1) run.multiline.Add(first_line, line.lines);
  }
  return run;
}

SliceReader::Line SliceReader::LineWithQuotes(absl::string_view text, size_t begin) const {
  if (begin > limits_.max_bytes) return {};  // fits into no slice with what is before it
  const CsvRecord record =
      MeasureCsvRecord(text.substr(begin), delimiter_, max_record_bytes_, multiline_);
  const bool seen_all = window_.at_end() || text.size() - begin >= max_record_bytes_ + 2;
  // More text could not change it: the record's end is in sight, and so is its fault.
  const bool final =
      begin + record.bytes < text.size() && (record.fault == CsvRecord::Fault::kNone ||
                                             record.fault == CsvRecord::Fault::kTextAfterQuote ||
                                             record.fault == CsvRecord::Fault::kUnclosedInLine);
  if (!seen_all && !final) return Cut();
  if (record.fault == CsvRecord::Fault::kTooLong) return {};
  const bool reaches_further =
      record.fault == CsvRecord::Fault::kUnclosedQuote && text.size() - begin > max_record_bytes_;
  if (reaches_further &&
      std::find(broken_lines_.begin(), broken_lines_.end(), begin) == broken_lines_.end()) {
    return Open();
  }
  return {begin + record.bytes, record.lines};
}

SliceReader::Line SliceReader::LastLine(absl::string_view text, size_t begin) const {
  if (text.size() - begin > max_record_bytes_) return {};
  if (window_.at_end()) return begin < text.size() ? Line{text.size(), 1} : Line{};
  return text.size() < lookahead_ ? Cut() : Line{};
}

absl::StatusOr<Slice> SliceReader::SkipLongRecord() {
  if (!quotes_ || !multiline_) return SkipLongLine();
  MUSTER_ASSIGN_OR_RETURN(const std::optional<LongRecord> record,
                          FindLongRecord(*source_, window_.offset(), delimiter_));
  if (!record.has_value()) return SkipLongLine();
  Slice slice;
  slice.offset = window_.offset();
  slice.length = record->bytes;
  slice.first_line = line_;
  slice.transactions = 1;
  slice.oversized = true;
  if (record->lines > 1) slice.multiline.Add(line_, record->lines);
  for (uint64_t left = record->bytes; left > 0;) {
    MUSTER_RETURN_IF_ERROR(window_.Require(1));
    const uint64_t step = std::min<uint64_t>(left, window_.text().size());
    window_.Advance(static_cast<size_t>(step));
    left -= step;
  }
  line_ += record->lines;
  slice.next = {window_.offset(), line_};
  return slice;
}

absl::StatusOr<Slice> SliceReader::SkipLongLine() {
  Slice slice;
  slice.offset = window_.offset();
  slice.first_line = line_;
  slice.transactions = 1;
  slice.oversized = true;
  bool ended = false;
  while (!ended && !window_.text().empty()) {
    const absl::string_view text = window_.text();
    const size_t newline = text.find('\n');
    ended = newline != absl::string_view::npos;
    window_.Advance(ended ? newline + 1 : text.size());
    MUSTER_RETURN_IF_ERROR(window_.Require(1));
  }
  ++line_;
  slice.length = window_.offset() - slice.offset;
  slice.next = {window_.offset(), line_};
  return slice;
}

namespace {

absl::Status RequireNewlines(absl::string_view text) {
  const size_t cr = text.substr(0, text.find('\n')).find('\r');
  if (cr == absl::string_view::npos || cr + 1 == text.size() || text[cr + 1] == '\n') {
    return absl::OkStatus();
  }
  return LineEndError(text[cr + 1] == '\r');
}

// What `text` begins with, as a sound record of UTF-8.
absl::StatusOr<CsvRecord> MeasureHeader(absl::string_view text, const InputFormat& format) {
  if (text.empty()) {
    return absl::InvalidArgumentError("the input is empty, but the job expects a header");
  }
  MUSTER_RETURN_IF_ERROR(RequireNewlines(text));
  const CsvRecord record =
      format.quotes
          ? MeasureCsvRecord(text, format.delimiter, format.max_record_bytes, format.multiline)
          : MeasureLine(text, format.max_record_bytes);
  if (record.fault != CsvRecord::Fault::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header cannot be read: ", FaultReason(record)));
  }
  if (const size_t bad = base::FirstInvalidUtf8(text.substr(0, record.text)); bad != record.text) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header is not UTF-8: byte ", bad + 1, " of it", EncodingHint(text)));
  }
  return record;
}

std::vector<std::string> SplitHeader(absl::string_view line, char delimiter, bool quotes) {
  std::vector<absl::string_view> fields;
  std::string unescaped(line.size(), '\0');
  char* room = unescaped.data();
  SplitCsvFields(line, delimiter, &room, &fields, quotes);
  return {fields.begin(), fields.end()};
}

// For a header that is one name: the delimiter that the file seems to have instead of the job's, in
// words. Empty: none fits.
std::string MeantDelimiter(const std::string& wanted, const std::vector<std::string>& fields) {
  if (fields.size() != 1 || fields[0].empty()) return "";
  for (const char delimiter : {';', '\t', ',', '|'}) {
    // A line that was one name may be half a record in the file's own form: with a line end between
    // quotes, for one.
    const CsvRecord record = MeasureCsvRecord(fields[0], delimiter, fields[0].size());
    const bool is_sound =
        record.fault == CsvRecord::Fault::kNone && record.text == fields[0].size();
    const std::vector<std::string> names = SplitHeader(fields[0], delimiter, is_sound);
    if (std::find(names.begin(), names.end(), wanted) == names.end()) continue;
    const std::string shown = delimiter == '\t' ? "\\t" : std::string(1, delimiter);
    return absl::StrCat("; the file seems to have another delimiter: write `delimiter: \"", shown,
                        "\"` below `input` in the job file");
  }
  return "";
}

absl::StatusOr<int> FindField(const std::string& wanted, const std::vector<std::string>& fields) {
  const auto found = std::find(fields.begin(), fields.end(), wanted);
  if (found == fields.end()) {
    const std::string delimiter = MeantDelimiter(wanted, fields);
    return absl::InvalidArgumentError(
        absl::StrCat("the input has no column ", base::Quoted(wanted),
                     delimiter.empty() ? base::DidYouMean(wanted, fields) : delimiter,
                     " (its columns: ", base::ListNames(fields), ")"));
  }
  const auto again = std::find(found + 1, fields.end(), wanted);
  if (again != fields.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header names the column ", base::Quoted(wanted), " twice: fields ",
                     found - fields.begin() + 1, " and ", again - fields.begin() + 1));
  }
  return static_cast<int>(found - fields.begin());
}

absl::Status ReadNames(const InputFormat& format, Window* window, Header* header) {
  MUSTER_RETURN_IF_ERROR(SkipEmptyLines(window, &header->data.line));
  MUSTER_RETURN_IF_ERROR(window->Require(format.max_record_bytes + 2));
  MUSTER_ASSIGN_OR_RETURN(const CsvRecord record, MeasureHeader(window->text(), format));
  header->fields =
      SplitHeader(window->text().substr(0, record.text), format.delimiter, format.quotes);
  window->Advance(record.bytes);
  header->data.line += record.lines;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int>> FindColumns(const InputFormat& format,
                                             const std::vector<std::string>& fields) {
  std::vector<int> positions;
  for (const ColumnSource& column : format.columns) {
    if (const int* position = std::get_if<int>(&column.source)) {
      positions.push_back(*position - 1);
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(const int position,
                            FindField(std::get<std::string>(column.source), fields));
    positions.push_back(position);
  }
  return positions;
}

}  // namespace

absl::StatusOr<Header> ReadHeader(const ByteSource& source, const InputFormat& format) {
  Window window(&source, 0, std::max(format.max_record_bytes + 2, kMaxMarkBytes));
  MUSTER_RETURN_IF_ERROR(window.Require(kMaxMarkBytes));
  MUSTER_RETURN_IF_ERROR(CheckMark(window.text()));
  const bool marked = window.text().substr(0, kUtf8Mark.size()) == kUtf8Mark;
  if (marked) window.Advance(kUtf8Mark.size());
  Header header;
  if (format.kind == InputFormat::Kind::kCsv) {
    if (format.header) MUSTER_RETURN_IF_ERROR(ReadNames(format, &window, &header));
    MUSTER_ASSIGN_OR_RETURN(header.positions, FindColumns(format, header.fields));
  }
  header.data.offset = window.offset();
  return header;
}

}  // namespace muster::input
