// SPDX-License-Identifier: Apache-2.0

// The rows of output records: those of an item in pieces, so that a reader holds a few of them.
//
// A piece is an OutputRecords message (proto/muster/v1/item_result.proto) with as many of the
// item's records as have kOutputPieceBytes; at least one. Pieces count from 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/output_record.h"
#include "muster/report/counted_item.h"
#include "muster/report/report_store.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

inline constexpr size_t kOutputPieceBytes = size_t{128} << 10;

// In the caller's transaction. FailedPrecondition: this revision of the job is known with other
// columns.
absl::Status EnsureOutputColumns(Connection* connection, const report::BatchShape& shape);
// In their order; none: the revision has no outputs, or is not known, or an older muster made the
// file.
absl::StatusOr<std::vector<base::OutputColumn>> LoadOutputColumns(Connection* connection,
                                                                  absl::string_view job,
                                                                  absl::string_view job_revision);

// In the caller's transaction; the item has no records yet. Does nothing where it brings none.
absl::Status InsertOutputs(Connection* connection, const report::CountedItem& item);

// As ReportReader::ReadOutputs. DataLoss naming the item: a piece cannot be read.
absl::StatusOr<std::optional<report::OutputPosition>> ReadOutputs(
    Connection* connection, uint64_t batch, report::OutputPosition from, size_t max_bytes,
    const std::function<void(base::OutputRecord)>& visit);

}  // namespace muster::report::sqlite
