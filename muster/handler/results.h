// Results: where a handler gives each transaction its verdict, and what those verdicts add up to.
//
// Each transaction gets exactly one verdict: Count (it contributes to groups, or to none) or
// Reject. A transaction whose contribution does not fit (a measure overflows, or needs more
// decimals than the job keeps) is rejected with that reason and contributes to nothing.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "muster/base/decimal.h"
#include "muster/handler/group_sums.h"
#include "muster/handler/schema.h"
#include "muster/handler/work_item.h"

namespace muster::handler {

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
  // same transaction, and a contribution whose keys or measures are not as many as the group's, are
  // mistakes of the handler: see Verdict().
  void Count(const Transaction& transaction, std::initializer_list<Contribution> contributions);

  // Bytes of `reason` that are not printable UTF-8 become "?".
  void Reject(const Transaction& transaction, absl::string_view reason);

  // Counts `transaction` with all that `alone` holds: the results of an item that had this
  // transaction only. Rejects it when `alone` does, or when the sums overflow.
  void Absorb(const Transaction& transaction, Results& alone);

  // For handlers that aggregate outside of this process: adds the row as it is. InvalidArgument
  // when keys or measures do not match the schema, OutOfRange on overflow; nothing is added then.
  absl::Status AddRow(Group group, absl::Span<const std::string> keys,
                      absl::Span<const base::Decimal> measures);
  void CountAllExceptRejected();

  // OK when each transaction has exactly one verdict; else Internal, naming the first ordinal that
  // has none or two, or the contribution that cannot be meant.
  absl::Status Verdict() const;

  int64_t counted() const { return counted_; }
  // As they were given, in no order of line.
  const std::vector<Rejection>& rejections() const { return rejections_; }
  // Sorted rows of every group that has any. They are gone from here afterwards.
  std::vector<GroupPartial> TakePartials();

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

  const JobSchema* const schema_;
  std::vector<uint8_t> verdicts_;  // by ordinal: 0 none, 1 one, 2 several
  std::vector<GroupSums> groups_;  // as schema_->groups
  std::vector<Rejection> rejections_;
  int64_t counted_ = 0;
  absl::Status mistake_;               // the first that the handler made
  std::vector<base::Decimal> values_;  // reused: the measures at hand, at the schema's scales
};

}  // namespace muster::handler
