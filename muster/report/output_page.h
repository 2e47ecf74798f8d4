// SPDX-License-Identifier: Apache-2.0

// OutputPage: a page of the output records of a complete batch, which ReadOutputPage reads page by
// page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/output_record.h"
#include "muster/report/report_store.h"

namespace muster::report {

// A page ends with the piece of records that reaches this size, and so has about as many bytes.
inline constexpr size_t kOutputPageBytes = size_t{1} << 20;

struct OutputPage {
  std::vector<base::OutputColumn> columns;
  std::vector<base::OutputRecord> records;
  std::string next_page_token;  // empty: there are no more
};

// The page at `page_token`, as the page before gave it; empty: the first one. Pages with one
// receipt are of one state of the batch, however much time passes between them.
//
// NotFound: no such batch, or its job has no outputs. FailedPrecondition: the batch has no receipt
// yet, is cancelled, or a redrive has opened it again. Aborted: the batch got another receipt after
// the first page. InvalidArgument: the token is none.
absl::StatusOr<OutputPage> ReadOutputPage(ReportReader& reader, uint64_t batch,
                                          absl::string_view page_token);

}  // namespace muster::report
