// Content that comes in one piece and is short enough to lie in its batch's record: one sync of the
// ledger makes the batch, its content and its items durable.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/base/fingerprint.h"
#include "muster/input/byte_source.h"
#include "muster/job/job.h"
#include "muster/ledger/batch_ledger.h"

namespace muster::initiator::batch {

// Each look at a batch copies its record.
inline constexpr size_t kMaxInlineContentBytes = size_t{16} << 10;
// The items that are recorded with it; each look at one of them reads all.
inline constexpr size_t kMaxInlineItems = 128;

// Sealed: `hash` is that of `data`, which is not owned and has 1 to kMaxInlineContentBytes bytes.
struct InlineContent {
  absl::string_view data;
  base::Fingerprint128 hash;
};

// Its items, kMaxInlineItems at most; none where it is nothing that the job can be run on.
// Whoever splits the batch goes on behind them, and says what is wrong.
std::vector<ledger::ItemBoundary> SplitInline(const job::JobDefinition& job,
                                              absl::string_view content);

// `content`, to be read.
std::shared_ptr<const input::ByteSource> SourceOf(std::string content);

}  // namespace muster::initiator::batch
