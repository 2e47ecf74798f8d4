// Results: where a handler gives each transaction its verdict, and what those verdicts add up to.
//
// Each transaction gets exactly one verdict: Count (it contributes to groups, or to none) or Reject.
// A transaction whose contribution does not fit (a measure overflows, or needs more decimals than the
// job keeps) is rejected with that reason and contributes to nothing.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "muster/base/decimal.h"
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

// A mergeable row of the aggregate.
struct PartialRow {
  std::vector<std::string> keys;
  std::vector<base::Decimal> measures;  // at the measures' scales
};

struct GroupPartial {
  std::string group;
  std::vector<PartialRow> rows;  // sorted by keys, so that equal results are equal bytes
};

// Not thread-safe. One object per attempt.
class Results {
 public:
  // `schema` is not owned. `transactions`: how many verdicts are due.
  Results(const JobSchema* schema, int transactions);

  // Counts `transaction`, or rejects it when a contribution does not fit. A second verdict for the
  // same transaction is a mistake of the handler: see Verdict().
  void Count(const Transaction& transaction, std::initializer_list<Contribution> contributions);
  void Reject(const Transaction& transaction, absl::string_view reason);

  // For handlers that aggregate outside of this process: `rows` as they are. InvalidArgument when
  // keys or measures do not match the schema, OutOfRange on overflow.
  absl::Status AddRow(Group group, absl::Span<const std::string> keys,
                      absl::Span<const base::Decimal> measures);
  void CountAllExceptRejected();

  // OK when each transaction has exactly one verdict; else Internal, naming the first ordinal that
  // has none or two.
  absl::Status Verdict() const;

  int64_t counted() const { return counted_; }
  const std::vector<Rejection>& rejections() const { return rejections_; }
  // Sorted rows of every group that has any.
  std::vector<GroupPartial> TakePartials();

 private:
  struct Row {
    std::vector<base::Decimal> measures;
  };
  // Keyed by the row's keys, joined with their lengths.
  using Rows = absl::flat_hash_map<std::string, Row>;

  const JobSchema* const schema_;
  std::vector<uint8_t> verdicts_;  // by ordinal: 0 none, 1 one, 2 several
  std::vector<Rows> groups_;       // as schema_->groups
  std::vector<Rejection> rejections_;
  int64_t counted_ = 0;
  std::string scratch_;
};

}  // namespace muster::handler
