// SPDX-License-Identifier: Apache-2.0

// Results: takes a verdict for each transaction of an item, and holds what the verdicts add up to,
// exactly. GroupSums: the sums of one group.
//
// Each transaction gets exactly one verdict: Count (it contributes to groups, or to none) or
// Reject. A transaction whose contribution does not fit (a measure overflows, or needs more
// decimals than the job keeps) is rejected with that reason and contributes to nothing.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "muster/base/decimal.h"
#include "muster/base/output_record.h"
#include "muster/handler/work_item.h"

namespace muster::handler {

// A mergeable row of the aggregate.
struct PartialRow {
  std::vector<std::string> keys;
  std::vector<base::Decimal> measures;  // at the measures' scales
};

struct GroupPartial {
  std::string group;
  std::vector<PartialRow> rows;  // sorted by keys, so that equal results are equal bytes
};

// A key is a label in a report, not a document; each distinct one is held in memory and in the
// store.
inline constexpr size_t kMaxKeyBytes = 1024;

// Brings `value` to the scale of `measure`, without rounding. InvalidArgument when it needs more
// decimals than that, OutOfRange when it is too large; both name the measure.
absl::Status FitMeasure(const MeasureSchema& measure, base::Decimal* value);

// Not thread-safe. Adding to a known row allocates nothing.
class GroupSums {
 public:
  // `schema` is not owned.
  explicit GroupSums(const GroupSchema* schema) : schema_(schema) {}

  // Adds `values` (as FitMeasure yields them) to the row of `keys`; the schema sets the number of
  // both. Adds nothing on failure: OutOfRange on overflow, InvalidArgument for a key that is too
  // long or not text.
  absl::Status Add(absl::Span<const absl::string_view> keys,
                   absl::Span<const base::Decimal> values);

  // Takes back an earlier Add of the same arguments; removes a row that has no other addition.
  void Subtract(absl::Span<const absl::string_view> keys, absl::Span<const base::Decimal> values);

  // Returns the rows, sorted by keys, and leaves none here.
  GroupPartial Take();

 private:
  // Makes `row_` the number of the keys' row; a new one if there is none yet.
  absl::Status FindRow(absl::Span<const absl::string_view> keys);
  // Writes the keys into joined_.
  void JoinKeys(absl::Span<const absl::string_view> keys);
  absl::Status CheckKeys(absl::Span<const absl::string_view> keys) const;
  size_t AddRow();

  const GroupSchema* schema_;
  // Row numbers by the row's keys, each with its length before it.
  absl::flat_hash_map<std::string, size_t> rows_;
  std::vector<int64_t> adds_;        // by row: additions that stand
  std::vector<base::Decimal> sums_;  // row r's measures begin at r × measures
  std::string joined_;               // reused for looking up
  // The row used last, and its keys: lines of one invoice follow each other.
  std::optional<size_t> row_;
  std::string row_keys_;
};

// What one transaction adds to one row of a group: the row's keys and a value per measure, both in
// the job's order.
struct Contribution {
  Group group;
  std::initializer_list<absl::string_view> keys;
  std::initializer_list<base::Decimal> measures;
};

struct Rejection {
  int64_t line = 0;
  std::string reason;
};

// A reason travels with each rejected transaction and stands in the report: longer ones are cut.
inline constexpr size_t kMaxReasonBytes = 256;

// Not thread-safe. One object per attempt.
class Results {
 public:
  // `schema` is not owned. `transactions`: how many verdicts are due.
  Results(const JobSchema* schema, int transactions);

  // Counts `transaction`, or rejects it when a contribution does not fit. A second verdict for the
  // same transaction is a mistake of the handler, as is a contribution with another number of keys
  // or measures than the group has: see Verdict().
  void Count(const Transaction& transaction, std::initializer_list<Contribution> contributions);

  // The same with output records: each has a field for each of the schema's outputs, in their
  // order. A transaction with a record that does not fit (base::FitOutputFields), or for which the
  // item's records have no room (base::kMaxItemOutputBytes), is rejected with that reason; so is
  // one with records if the job has no outputs.
  void Count(const Transaction& transaction, std::initializer_list<Contribution> contributions,
             std::vector<std::vector<std::string>> records);

  // Bytes of `reason` that are not printable UTF-8 become "?".
  void Reject(const Transaction& transaction, absl::string_view reason);

  // Counts `transaction` with all that `alone` holds: the results of an item that had this
  // transaction only. Rejects it when `alone` does, or when the sums overflow.
  void Absorb(const Transaction& transaction, Results& alone);

  // For handlers that aggregate outside of this process: adds the row as it is. InvalidArgument
  // when keys or measures do not match the schema, OutOfRange on overflow; nothing is added then.
  absl::Status AddRow(Group group, absl::Span<const std::string> keys,
                      absl::Span<const base::Decimal> measures);
  // A record of a transaction that is not to be rejected later. InvalidArgument when it does not
  // fit, or there is no room for it.
  absl::Status AddOutput(const Transaction& transaction, std::vector<std::string> fields);
  void CountAllExceptRejected();

  // OK when each transaction has exactly one verdict; else Internal, naming the first ordinal with
  // none or two, or the malformed contribution.
  absl::Status Verdict() const;

  int64_t counted() const { return counted_; }
  // In the order in which they were given.
  const std::vector<Rejection>& rejections() const { return rejections_; }
  // Returns the sorted rows of every group that has any, and leaves none here.
  std::vector<GroupPartial> TakePartials();
  // Returns the output records in the order of their lines, those of a line as they were given, and
  // leaves none here.
  std::vector<base::OutputRecord> TakeOutputs();

 private:
  bool TakeVerdict(const Transaction& transaction);
  absl::Status Fit(Group group, absl::Span<const base::Decimal> measures);
  absl::Status AddAll(absl::Span<const Contribution> contributions);
  void TakeBack(absl::Span<const Contribution> contributions);
  absl::Status AddPartials(absl::Span<const GroupPartial> partials);
  // Of the first `count` rows that AddPartials added.
  void TakeBackPartials(absl::Span<const GroupPartial> partials, size_t count);
  bool RefuseMalformed(const Contribution& contribution);
  void AppendRejection(int64_t line, absl::string_view reason);
  // Makes records of the transaction out of `records`; `bytes` is what they take of the item's
  // room.
  absl::Status FitOutputs(int64_t line, std::vector<std::vector<std::string>> records,
                          std::vector<base::OutputRecord>* outputs, size_t* bytes) const;
  void Append(std::vector<base::OutputRecord> outputs, size_t bytes);

  const JobSchema* const schema_;
  std::vector<uint8_t> verdicts_;  // by ordinal: 0 none, 1 one, 2 several
  std::vector<GroupSums> groups_;  // as schema_->groups
  std::vector<Rejection> rejections_;
  std::vector<base::OutputRecord> outputs_;
  size_t output_bytes_ = 0;
  int64_t counted_ = 0;
  absl::Status mistake_;               // the first that the handler made
  std::vector<base::Decimal> values_;  // reused: one contribution's measures
};

}  // namespace muster::handler
