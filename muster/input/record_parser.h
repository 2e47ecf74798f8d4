// SPDX-License-Identifier: Apache-2.0

// ParsedRecords: the records of a slice, in columns, and the rejected records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "muster/input/csv.h"
#include "muster/input/format.h"
#include "muster/input/slice_reader.h"

namespace muster::input {

// Where a record stands: its position in its slice, from 0, and the physical line it begins at.
struct RecordPosition {
  int ordinal = 0;
  int64_t line = 0;
};

struct RejectedRecord {
  int ordinal = 0;
  int64_t line = 0;
  std::string reason;
};

// Filled by RecordParser::Parse and meant to be reused: once grown, it allocates nothing for sound
// records. Views lead into the parsed slice, or into `room`. Not thread-safe.
struct ParsedRecords {
  int columns = 0;
  std::vector<absl::string_view> fields;  // of the sound records, `columns` each; none is null
  std::vector<RecordPosition> records;    // the sound ones, in order
  std::vector<RejectedRecord> rejected;   // the others, in order

  // Sound and rejected ones: the slice's transactions.
  size_t total() const { return records.size() + rejected.size(); }
  absl::Span<const absl::string_view> Fields(size_t record) const {
    const size_t width = static_cast<size_t>(columns);
    return absl::MakeConstSpan(fields.data() + record * width, width);
  }

  // Makes it empty, with room for `bytes` of unescaped text. Unescaping never makes text longer, so
  // a slice's own size is always enough, and views into the room stay valid.
  void Reset(int width, size_t bytes);

  std::unique_ptr<char[]> room;
  size_t room_bytes = 0;
};

// CsvParser: the csv part of RecordParser.

struct CsvShape {
  char delimiter = ',';
  std::vector<int> positions = {};  // of the wanted fields, from 0
  int fields = 0;                   // that each record must have; 0: as many as `positions` need
  size_t max_record_bytes = 0;
  bool quotes = true;  // these two as InputFormat has them
  bool multiline = true;
  std::string refusal = {};  // when not empty, each record is rejected with it
};

// One object per slice. Not thread-safe.
class CsvParser {
 public:
  // `shape` and `out` are not owned; `slice` must outlive the use of `out`, which has been Reset.
  CsvParser(const CsvShape* shape, absl::string_view slice, int64_t first_line, ParsedRecords* out);

  void Parse();

 private:
  // Takes the record that begins at begin_ and has a quote in it. Answers its bytes.
  size_t TakeQuotedRecord();
  // `record` without its line end.
  void Take(absl::string_view record, const absl::string_view* fields, size_t count);
  void Reject(std::string reason);

  const CsvShape& shape_;
  const absl::string_view slice_;
  const bool ascii_;
  const bool suspicious_;  // see IsSuspicious
  const size_t least_fields_;
  size_t begin_ = 0;
  int64_t line_;
  std::vector<absl::string_view> plain_;   // the first fields of a record without quotes
  std::vector<absl::string_view> quoted_;  // the fields of a record with quotes
  char* room_;
  ParsedRecords* const out_;
};

// RecordParser: turns a slice into records, and records into the columns that handlers see.

// A record that cannot be read is rejected with a reason and never stops the others:
//   csv    it has another number of fields than the header (without a header: fewer than a column
//          needs); its quotes do not work out
//   jsonl  it is not a JSON object; a wanted member is there twice
//   csv, lines  a CR that no LF follows stands in it, and not within quotes: it may be two records
//   any    it is not UTF-8, or has a NUL byte
// csv and lines: a field is the text as it stands, unquoted; spaces are kept. jsonl: a string's
// text; a number, true or false as written; a nested value as compact JSON; an absent member or
// null is "".
//
// Immutable and thread-safe; one per job will do.
class RecordParser {
 public:
  // DataLoss unless `positions` fit a Header of `format`: one for each column, and none behind the
  // header's last field. The positions come out of stored messages.
  static absl::Status CheckPositions(const InputFormat& format, const std::vector<int>& positions,
                                     int header_fields);

  // `positions` of the input's Header; they matter for csv only. `header_fields`: the number of
  // names in its header, 0 without one. If CheckPositions refuses the positions, each record is
  // rejected for that reason.
  RecordParser(InputFormat format, std::vector<int> positions, int header_fields);
  RecordParser(InputFormat format, const Header& header);

  // Parses a slice as SliceReader cut it; `first_line` is its own. Afterwards out->total() is the
  // slice's number of transactions. `slice` must outlive the use of `out`.
  void Parse(absl::string_view slice, int64_t first_line, ParsedRecords* out) const;

 private:
  void ParseLines(absl::string_view slice, int64_t first_line, ParsedRecords* out) const;

  const InputFormat format_;
  const CsvShape csv_;
  const std::vector<std::string> members_;  // jsonl: of the columns, in order
};

// The reason for rejecting the one transaction of an oversized slice.
std::string OversizedReason(uint64_t record_bytes, uint64_t limit_bytes);

}  // namespace muster::input
