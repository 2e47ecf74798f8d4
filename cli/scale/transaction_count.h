// CountTransactions: how many transactions of a job an input has.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "muster/input/byte_source.h"
#include "muster/job/job.h"

namespace muster::cli {

// As the initiator splits it: what cannot be parsed counts too. InvalidArgument as ReadHeader;
// others are the source's. Takes as long as reading the input once.
absl::StatusOr<int64_t> CountTransactions(const job::JobDefinition& job,
                                          const input::ByteSource& source);

}  // namespace muster::cli
