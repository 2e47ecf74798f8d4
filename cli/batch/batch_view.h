// SPDX-License-Identifier: Apache-2.0

// BatchView: a batch as commands show it, and the forms in which they do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/item/promise.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_store.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// From the ledger and the report.
struct BatchView {
  ledger::Batch batch;
  report::Progress progress;  // all zero before anything was counted
  // True: `batch` is the ledger's own record. A server answers less: nothing about the input,
  // uncounted items and refills.
  bool has_ledger = true;
  // Why the batch does not proceed for now, from a server; empty: it proceeds, or there is no
  // server to ask.
  std::string problem{};
  std::optional<item::PromiseState> promise{};  // none: nothing was promised
  // Why `progress` is not known, though the batch is; empty: it is.
  std::string counts_problem{};
  // Why what the batch's retention ends cannot be removed, and since when; empty: nothing stands in
  // the way, or there is no server to ask.
  std::string removal_problem{};
  absl::Time removal_problem_since{};
};

// A page of a list.
struct BatchViews {
  std::vector<BatchView> batches;  // in falling order of number
  uint64_t next_below = 0;         // where the page of older ones begins; 0: there is none
};

// All that is known of a batch; what is not known is left out, but for the counts, which are null.
nlohmann::ordered_json JsonOf(const BatchView& view);

// "in batch 9": the batch that retries it; "of line 41": the line that it was in the batch
// that it retries; both, "of line 41, in batch 9"; empty: neither.
std::string RetryText(const report::RejectionRow& row);

// "sealed, waits, at risk"; "complete, late".
std::string StateOf(const BatchView& view);

// What becomes of a batch of a data directory that is not over and that no process works on: how it
// goes on, and how it is given up.
std::string HowToGoOn(const ledger::Batch& batch, const std::string& data_dir);

}  // namespace muster::cli
