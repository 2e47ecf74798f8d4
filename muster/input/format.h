// InputFormat: how the bytes of an input are cut into records, and records into columns.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "muster/input/limits.h"

namespace muster::input {

// Where a column that handlers see comes from.
struct ColumnSource {
  std::string name;
  // The text of a CSV header, or the name of a JSON member; or, in a CSV without a header, the
  // 1-based position of the field.
  std::variant<std::string, int> source;
};

// Rules that all formats share: UTF-8; a record ends at a newline (LF or CRLF) or at the end of the
// input; an empty line is no record.
//   csv    RFC 4180: a field that begins with a quote runs to its closing quote, newlines and
//          delimiters included, and "" in it is a quote. In other fields a quote is an ordinary
//          character, but not in a record that runs over several lines.
//   jsonl  one JSON object a line.
//   lines  the line itself is the only field.
// A CSV record whose quotes do not work out (nothing closes a quote within max_record_bytes, or
// text follows a closing quote) loses its first line only: reading goes on at the next line, so
// that one stray quote never takes the records behind it along.
struct InputFormat {
  enum class Kind { kCsv, kJsonl, kLines };

  Kind kind = Kind::kCsv;
  bool header = true;  // csv only: the first record names the fields
  char delimiter = ',';
  std::vector<ColumnSource> columns;
  size_t max_record_bytes = kMaxRecordBytes;  // without the line end
};

}  // namespace muster::input
