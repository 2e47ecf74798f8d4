// SPDX-License-Identifier: Apache-2.0

// Where a CSV record that has quotes ends. The splitter and the parser share this one function, so
// that both always see the same records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/input/format.h"

namespace muster::input {

struct CsvRecord {
  enum class Fault {
    kNone,
    kUnclosedQuote,   // of `field`
    kUnclosedInLine,  // of `field`, where a record is one line
    kTextAfterQuote,  // of `field`
    kTooLong,         // the first line alone is longer than a record may be
  };

  Fault fault = Fault::kNone;
  int field = 0;      // 1-based
  size_t bytes = 0;   // with its line end; of the first line only when the quotes are at fault
  size_t text = 0;    // without its line end (LF or CRLF)
  int64_t lines = 1;  // physical lines that it spans
};

// The first line of `text`, which is not empty, as a record: kNone or kTooLong.
CsvRecord MeasureLine(absl::string_view text, size_t max_bytes);

// Measures the record that begins `text`. Looks at no more than max_bytes + 2 bytes: for a caller
// that has at least that many, or the rest of the source, more text would not change the answer.
//
// Each broken record costs one look ahead, and looks ahead do not add up: two of them that overlap
// take every quote in opposite ways, so one of the two ends at the next newline. (This is what the
// rule against plain quotes in records of several lines buys.)
//
// `multiline` false: a field that its line does not close is at fault.
CsvRecord MeasureCsvRecord(absl::string_view text, char delimiter, size_t max_bytes,
                           bool multiline = true);

// Whether `record`, which is not empty and has no line end, has a quote that it does not close.
// Where what follows closes the quote, both are one record; so it is itself only in its own input.
bool HasUnclosedQuote(absl::string_view record, const InputFormat& format);

// For people: "field 3 opens a quote that is never closed".
std::string FaultReason(const CsvRecord& record);

// Unescapes a quoted field: writes the text of `quoted`, which stood between the quotes, to `out`,
// which must have room for all of it. Returns its length.
size_t UnescapeQuotes(absl::string_view quoted, char* out);

// The position of the quote that closes the field with text that begins at `from`; npos when none
// does.
size_t FindClosingQuote(absl::string_view text, size_t from);

// Appends the fields of one CSV record, which MeasureCsvRecord found sound, without its line end.
// Writes fields with doubled quotes to `*room`, which must have record.size() bytes left, and
// advances it; all others are views into `record`. `quotes` false: quotes are text.
void SplitCsvFields(absl::string_view record, char delimiter, char** room,
                    std::vector<absl::string_view>* fields, bool quotes = true);

// The position of a CR in a field without quotes, of a sound record without its line end: no LF
// follows it, and it may have been meant as a line end. npos: there is none.
size_t FindLoneCr(absl::string_view record, char delimiter, bool quotes);

}  // namespace muster::input
