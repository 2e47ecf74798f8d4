#include "muster/input/slice_reader.h"

#include <algorithm>

#include "muster/base/status_macros.h"
#include "muster/input/byte_scan.h"
#include "muster/input/csv_record.h"
#include "muster/input/line.h"

namespace muster::input {
SliceReader::SliceReader(const ByteSource* source, const InputFormat& format, SliceLimits limits,
                         SliceStart start)
    : kind_(format.kind),
      delimiter_(format.delimiter),
      max_record_bytes_(format.max_record_bytes),
      limits_(limits),
      lookahead_(limits.max_bytes + format.max_record_bytes + 2),
      window_(source, start.offset, std::max(limits.read_bytes, lookahead_)),
      line_(start.line) {}

absl::StatusOr<std::optional<Slice>> SliceReader::Next() {
  MUSTER_RETURN_IF_ERROR(SkipEmptyLines(&window_, &line_));
  if (window_.text().empty()) return std::optional<Slice>();
  Run run = Measure(window_.text());
  if (run.cut) {
    // Rare, and not done ahead: to hold the whole look-ahead always would copy much.
    MUSTER_RETURN_IF_ERROR(window_.Require(lookahead_));
    run = Measure(window_.text());
  }
  if (run.records == 0) {
    MUSTER_ASSIGN_OR_RETURN(const Slice slice, SkipLongLine());
    return std::optional<Slice>(slice);
  }
  Slice slice;
  slice.offset = window_.offset();
  slice.length = run.bytes;
  slice.first_line = line_;
  slice.transactions = run.records;
  slice.data = window_.text().substr(0, run.bytes);
  window_.Advance(run.bytes);
  line_ += run.lines;
  slice.next = {window_.offset(), line_};
  return std::optional<Slice>(slice);
}

SliceReader::Run SliceReader::Measure(absl::string_view text) const {
  const char quote = kind_ == InputFormat::Kind::kCsv ? '"' : '\n';
  ByteScan<2> scan(text, {'\n', quote});
  Run run;
  size_t begin = 0;
  int64_t lines = 0;
  while (run.records < limits_.transactions) {
    const size_t found = scan.Next();
    Line line{found + 1, 1};
    if (found >= text.size()) {
      line = LastLine(text, begin);
    } else if (text[found] == '"') {
      line = LineWithQuotes(text, begin);
      scan.Seek(std::max(begin, line.end));
    } else if (found - begin > max_record_bytes_) {
      break;
    }
    run.cut = line.cut;
    if (line.cut || line.end == 0) break;
    const absl::string_view record = text.substr(begin, line.end - begin);
    begin = line.end;
    lines += line.lines;
    if (IsEmptyLine(record)) continue;
    if (run.records > 0 && line.end > limits_.max_bytes) break;
    ++run.records;
    run.bytes = line.end;
    run.lines = lines;
  }
  return run;
}

SliceReader::Line SliceReader::LineWithQuotes(absl::string_view text, size_t begin) const {
  if (begin > limits_.max_bytes) return {};  // fits into no slice with what is before it
  const CsvRecord record = MeasureCsvRecord(text.substr(begin), delimiter_, max_record_bytes_);
  const bool seen_all = window_.at_end() || text.size() - begin >= max_record_bytes_ + 2;
  // More text could not change it: the record's end is in sight, and so is its fault.
  const bool final =
      begin + record.bytes < text.size() && (record.fault == CsvRecord::Fault::kNone ||
                                             record.fault == CsvRecord::Fault::kTextAfterQuote);
  if (!seen_all && !final) return Cut();
  if (record.fault == CsvRecord::Fault::kTooLong) return {};
  return {begin + record.bytes, record.lines};
}

SliceReader::Line SliceReader::LastLine(absl::string_view text, size_t begin) const {
  if (text.size() - begin > max_record_bytes_) return {};
  if (window_.at_end()) return begin < text.size() ? Line{text.size(), 1} : Line{};
  return text.size() < lookahead_ ? Cut() : Line{};
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

}  // namespace muster::input
