#include "muster/input/header.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/nearest_name.h"
#include "muster/base/status_macros.h"
#include "muster/input/csv_fields.h"
#include "muster/input/csv_record.h"
#include "muster/input/utf8.h"
#include "muster/input/window.h"

namespace muster::input {
namespace {

constexpr absl::string_view kUtf8Mark = "\xEF\xBB\xBF";

absl::Status RefuseUtf16(absl::string_view text) {
  const absl::string_view two = text.substr(0, 2);
  if (two != "\xFF\xFE" && two != "\xFE\xFF") return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the input is UTF-16, not UTF-8: convert it, for example with iconv -f UTF-16 -t UTF-8");
}

absl::Status RequireNewlines(absl::string_view text) {
  const size_t cr = text.substr(0, text.find('\n')).find('\r');
  if (cr == absl::string_view::npos || cr + 1 == text.size() || text[cr + 1] == '\n') {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "the input's lines end with CR alone; they must end with LF or CRLF");
}

// What `text` begins with, as a sound record of UTF-8.
absl::StatusOr<CsvRecord> MeasureHeader(absl::string_view text, const InputFormat& format) {
  if (text.empty()) {
    return absl::InvalidArgumentError("the input is empty, but the job expects a header");
  }
  MUSTER_RETURN_IF_ERROR(RequireNewlines(text));
  const CsvRecord record = MeasureCsvRecord(text, format.delimiter, format.max_record_bytes);
  if (record.fault != CsvRecord::Fault::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header cannot be read: ", FaultReason(record)));
  }
  if (const size_t bad = FirstInvalidUtf8(text.substr(0, record.text)); bad != record.text) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header is not UTF-8: byte ", bad + 1, " of it"));
  }
  return record;
}

std::vector<std::string> SplitHeader(absl::string_view line, char delimiter) {
  std::vector<absl::string_view> fields;
  std::string unescaped(line.size(), '\0');
  char* room = unescaped.data();
  SplitCsvFields(line, delimiter, &room, &fields);
  return {fields.begin(), fields.end()};
}

absl::StatusOr<int> FindField(const std::string& wanted, const std::vector<std::string>& fields) {
  const auto found = std::find(fields.begin(), fields.end(), wanted);
  if (found == fields.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the input has no column ", base::Quoted(wanted), base::DidYouMean(wanted, fields),
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
  header->fields = SplitHeader(window->text().substr(0, record.text), format.delimiter);
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
  Window window(&source, 0, format.max_record_bytes + 2);
  MUSTER_RETURN_IF_ERROR(window.Require(kUtf8Mark.size()));
  MUSTER_RETURN_IF_ERROR(RefuseUtf16(window.text()));
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
