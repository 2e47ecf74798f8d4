#include "cli/scale/transaction_count.h"

#include <optional>

#include "muster/base/status_macros.h"
#include "muster/input/header.h"
#include "muster/input/slice_reader.h"

namespace muster::cli {

absl::StatusOr<int64_t> CountTransactions(const job::JobDefinition& job,
                                          const input::ByteSource& source) {
  MUSTER_ASSIGN_OR_RETURN(const input::Header header, input::ReadHeader(source, job.input));
  const input::SliceLimits limits = {static_cast<uint32_t>(job.item.transactions),
                                     job.item.max_bytes};
  input::SliceReader slices(&source, job.input, limits, header.data);
  int64_t transactions = 0;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const std::optional<input::Slice> slice, slices.Next());
    if (!slice.has_value()) return transactions;
    transactions += slice->transactions;
  }
}

}  // namespace muster::cli
