// SPDX-License-Identifier: Apache-2.0

// Outcome: the result of a batch, as `muster run` and `muster batch submit --wait` print it and
// exit by it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/base/multiline_records.h"
#include "muster/input/format.h"
#include "muster/item/promise.h"
#include "muster/job/job.h"
#include "muster/report/report_store.h"
#include "muster/v1/batch_service.pb.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::cli {

struct Outcome {
  uint64_t batch = 0;
  std::string job;
  report::Progress counted;
  uint64_t counted_before = 0;  // transactions, by earlier runs: the next two are of the rest
  double seconds = 0;
  double transactions_per_second = 0;
  bool complete = false;
  std::optional<item::PromiseState> promise;  // none: nothing was promised
  base::MultilineRecords multiline;
  // Of the items that were given up the one with the lowest index; none: it is not known.
  std::optional<report::ItemRow> first_dead;

  nlohmann::ordered_json Json() const;
  // "batch 7: 541,909 transactions = …", how long it took, and by how much it was late if it was;
  // two or three lines.
  std::string Text() const;
  // One line for each kind of loss (transactions that are not in the totals), with the command that
  // lists it, and one with the cause of first_dead, of 256 bytes at most. `where` names the batch's
  // data directory in those commands, as DataDirOption does.
  std::string Losses(const job::Tolerance& tolerate, const std::string& where) const;
  // A line that warns of records of several lines: they may have swallowed others. Empty: there are
  // few, or `input` expects them.
  std::string MultilineWarning(const input::InputFormat& input) const;
  // The exit code: decided by the share of the batch that was rejected or given up, and then by the
  // SLA.
  int Code(const job::Tolerance& tolerate) const;
};

// A line that warns that the file at `path` has grown since it had `taken` bytes, which are what
// `batch` is made of. `where` is as that of Losses. Empty: it has not.
std::string GrownWarning(const std::string& path, uint64_t taken, uint64_t batch,
                         const std::string& where);

// Adds "sla_seconds", "deadline", "late_by_seconds" and "at_risk", if something was promised.
void AddPromise(const std::optional<item::PromiseState>& promise, nlohmann::ordered_json* json);

// Adds "multiline_records", "multiline_record_lines" and "multiline_first_lines", if there are any.
void AddMultiline(const base::MultilineRecords& multiline, nlohmann::ordered_json* json);

// What the status of a batch says of its promise, and of what was counted.
std::optional<item::PromiseState> PromiseOf(const v1::BatchStatus& status);
report::Progress ProgressOf(const v1::BatchStatus& status);

}  // namespace muster::cli
