// SPDX-License-Identifier: Apache-2.0

// Output records: what handlers return for single transactions, beside what they add up
// (docs/job_file.md, `outputs`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace muster::base {

// A column of a job's output records.
struct OutputColumn {
  enum class Type { kText, kInt, kDecimal };
  std::string name;
  Type type = Type::kText;
  int scale = 0;  // decimals of a kDecimal, 0 to Decimal::kMaxScale; else 0

  friend bool operator==(const OutputColumn&, const OutputColumn&) = default;
};

// What a transaction gave. A transaction may give any number of records.
struct OutputRecord {
  int64_t line = 0;                 // where the transaction begins in the input, from 1
  std::vector<std::string> fields;  // a text for each column, in their order; "": absent

  friend bool operator==(const OutputRecord&, const OutputRecord&) = default;
};

// As many as a group has: a table of a common database can hold them.
inline constexpr size_t kMaxOutputColumns = 64;
// A record is a row, not a document.
inline constexpr size_t kMaxOutputRecordBytes = size_t{64} << 10;
// Of the records of one item: a worker holds them in memory, and so does a controller.
inline constexpr size_t kMaxItemOutputBytes = size_t{8} << 20;

// What a record takes of these bounds: its texts, and some bytes for each.
size_t OutputBytes(const std::vector<std::string>& fields);

// Checks that `fields` fit the columns, and brings numbers to their written form: "+07" becomes
// "7", and "1.5" or "15E-1" in a column of two decimals "1.50". Nothing is rounded. InvalidArgument
// naming the column: no number, too many decimals, too large for 64 bits or 38 digits, no UTF-8, a
// NUL; or another number of fields than columns, or a record that is too large.
absl::Status FitOutputFields(absl::Span<const OutputColumn> columns,
                             std::vector<std::string>* fields);

// "text", "int" or "decimal(2)", as a job file says it.
std::string OutputTypeName(const OutputColumn& column);

}  // namespace muster::base
