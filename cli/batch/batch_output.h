// SPDX-License-Identifier: Apache-2.0

// WriteOutputs: prints the output records of a batch. PageOf and AddRecordFormat: what it shares
// with the records of a call.
#pragma once

#include <iosfwd>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cli/output/environment.h"
#include "muster/report/output_page.h"
#include "muster/report/report_store.h"
#include "muster/v1/item_result.pb.h"
#include "muster/v1/job_schema.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::cli {

// Reads the page that a token names, as report::ReadOutputPage does.
using ReadPage =
    absl::FunctionRef<absl::StatusOr<report::OutputPage>(const std::string& page_token)>;

// Writes page by page, as kCsv or kJson; nothing before the first page is there. Errors are those
// of `read`; ResourceExhausted: `out` takes no more.
absl::Status WriteOutputs(ReadPage read, OutputFormat format, std::ostream& out);

// DataLoss: a record has not a field for each column.
absl::StatusOr<report::OutputPage> PageOf(
    const google::protobuf::RepeatedPtrField<v1::OutputColumn>& columns,
    const google::protobuf::RepeatedPtrField<v1::OutputRecord>& records);

// Adds -o, which says kCsv or kJson.
void AddRecordFormat(CLI::App* command, OutputFormat* format);

// Whether a file may be written at `path`, where nothing else is lost by it: InvalidArgument where
// one of `sources` is there or at its ".part", or what is no regular file; where it lies in
// `data_dir`, beside the report, or is an open file such as /dev/stdout; or where its folder is
// missing, which would be found out after all the work. A link stays, and the file that it leads to
// is meant.
absl::Status CheckOutputFile(const std::string& named, absl::Span<const std::string> sources,
                             const std::string& data_dir);

// Writes the batch's records to the file `named`, which has all of them or is as it was: JSON lines
// where the name ends in .json or .jsonl, else CSV.
absl::Status WriteOutputFile(report::ReportStore& store, uint64_t batch, const std::string& named);

}  // namespace muster::cli
