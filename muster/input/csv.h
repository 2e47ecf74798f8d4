// Where a CSV record that has quotes ends. The splitter and the parser share this one function, so
// that both always see the same records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::input {

struct CsvRecord {
  enum class Fault {
    kNone,
    kUnclosedQuote,   // of `field`
    kTextAfterQuote,  // of `field`
    kTooLong,         // the first line alone is longer than a record may be
  };

  Fault fault = Fault::kNone;
  int field = 0;      // 1-based
  size_t bytes = 0;   // with its line end; of the first line only when the quotes are at fault
  size_t text = 0;    // without its line end (LF or CRLF)
  int64_t lines = 1;  // physical lines that it spans
};

// Measures the record that begins `text`. Looks at no more than max_bytes + 2 bytes: a caller that
// has at least that many, or all that there are, gets an answer that more text would not change.
//
// Each broken record costs one look ahead, and looks ahead do not add up: two of them that overlap
// take every quote in opposite ways, so one of the two ends at the next newline. (This is what the
// rule against plain quotes in records of several lines buys.)
CsvRecord MeasureCsvRecord(absl::string_view text, char delimiter, size_t max_bytes);

// For people: "field 3 opens a quote that is never closed".
std::string FaultReason(const CsvRecord& record);

// The text of a quoted field, given what stands between its quotes, written to `out`, which must
// have room for all of `quoted`. Answers its length.
size_t UnescapeQuotes(absl::string_view quoted, char* out);

// The position of the quote that closes a field, given where its text begins; npos when none does.
size_t FindClosingQuote(absl::string_view text, size_t from);

// The fields of one CSV record.

// Appends the fields of `record`, which MeasureCsvRecord found sound, its line end cut off. Fields
// with doubled quotes are written to `*room`, which must have record.size() bytes left and is moved
// on; all others are views into `record`.
void SplitCsvFields(absl::string_view record, char delimiter, char** room,
                    std::vector<absl::string_view>* fields);

}  // namespace muster::input
