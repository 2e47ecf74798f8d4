// SPDX-License-Identifier: Apache-2.0

// InputFormat: how an input is cut into records and columns; and the bounds of that, each with its
// reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::input {

// A transaction is a record of some hundred bytes; one of a mebibyte is a mistake (a file without
// line ends, a quote that swallows the rest). It also bounds how far a reader looks ahead.
inline constexpr size_t kMaxRecordBytes = size_t{1} << 20;
// A record of several lines that is longer than that is skipped as one, if its quote is closed
// within this: a field is hardly longer, and two stray quotes that are further apart take no record
// along.
inline constexpr uint64_t kMaxLongRecordBytes = uint64_t{64} << 20;
// The least that is read at once: large enough that system calls vanish, small enough for a core's
// cache.
inline constexpr size_t kWindowBytes = size_t{1} << 20;

// A line, in every format, ends at "\n" or "\r\n".

// `line` without "\n" or "\r\n" at its end.
inline absl::string_view WithoutLineEnd(absl::string_view line) {
  if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// The line end that leaves `record` as it is: behind a CR, a lone "\n" would make both the end.
inline absl::string_view LineEndBehind(absl::string_view record) {
  return !record.empty() && record.back() == '\r' ? "\r\n" : "\n";
}

// An empty line is no record.
inline bool IsEmptyLine(absl::string_view line) {
  return line.size() <= 2 && WithoutLineEnd(line).empty();
}

// InputFormat: how the bytes of an input are cut into records, and records into columns.

// Where a column that handlers see comes from.
struct ColumnSource {
  std::string name;
  // The text of a CSV header, or the name of a JSON member; or, in a CSV without a header, the
  // 1-based position of the field.
  std::variant<std::string, int> source;
  // jsonl: records may lack the member.
  bool optional = false;
};

// Rules that all formats share: UTF-8; a record ends at a newline (LF or CRLF) or at the end of the
// input; an empty line is no record.
//   csv    RFC 4180: a field that begins with a quote runs to its closing quote, newlines and
//          delimiters included, and "" in it is a quote. In other fields a quote is an ordinary
//          character, but not in a record that runs over several lines. With `quotes` false it is
//          one in every field, and a record is a line.
//   jsonl  one JSON object a line.
//   lines  the line itself is the only field.
// A record that is longer than max_record_bytes is rejected as one, also where it spans several
// lines. A CSV record whose quotes do not work out (nothing closes a quote within
// kMaxLongRecordBytes, or text follows a closing quote) loses its first line only: reading goes on
// at the next line, so that one stray quote never takes the records behind it along. Two of them
// can, where the second looks like a closing quote: `multiline` false rules that out, and a record
// that spans several lines is counted (base/multiline_records.h).
struct InputFormat {
  enum class Kind { kCsv, kJsonl, kLines };

  Kind kind = Kind::kCsv;
  bool header = true;  // csv only: the first record names the fields
  char delimiter = ',';
  bool quotes = true;     // csv only: a quote at the start of a field quotes it
  bool multiline = true;  // csv only: a quoted field may hold line ends
  // csv only: the job says that records of several lines are meant, so that they need no warning.
  bool expects_multiline = false;
  std::vector<ColumnSource> columns;
  size_t max_record_bytes = kMaxRecordBytes;  // without the line end
};

}  // namespace muster::input
