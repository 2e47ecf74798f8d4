// SPDX-License-Identifier: Apache-2.0

// RecordWriter: prints output records as CSV or as JSON lines, one by one.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "cli/output/environment.h"
#include "muster/base/output_record.h"

namespace muster::cli {

// CSV is RFC 4180 with a header and line feeds, UTF-8. A JSON line is an object with a member for
// each column: text and decimals are strings, so that no reader rounds them, whole numbers are
// numbers, and a number that is absent is null. Not thread-safe.
class RecordWriter {
 public:
  // `format` is kCsv or kJson. `out` is not owned.
  RecordWriter(std::vector<base::OutputColumn> columns, OutputFormat format, std::ostream* out);

  // Once, before the first record.
  void Begin();
  // A field for each column.
  void Add(const base::OutputRecord& record);

 private:
  void AddCsv(const base::OutputRecord& record);
  void AddJson(const base::OutputRecord& record);

  const std::vector<base::OutputColumn> columns_;
  const OutputFormat format_;
  std::ostream* const out_;
  std::vector<std::string> members_;  // of JSON: each name, quoted, with its colon
  std::string line_;                  // reused
};

}  // namespace muster::cli
