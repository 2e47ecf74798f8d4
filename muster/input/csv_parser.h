// SPDX-License-Identifier: Apache-2.0

// CsvParser: the csv part of RecordParser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/input/parsed_records.h"

namespace muster::input {

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

}  // namespace muster::input
