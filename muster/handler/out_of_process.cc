// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/out_of_process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/base/text.h"

namespace muster::handler {

bool RejectUnlessUtf8(const JobSchema& schema, const Transaction& transaction, Results& results) {
  const absl::Span<const absl::string_view> fields = transaction.fields();
  const auto found = std::find_if_not(fields.begin(), fields.end(), base::IsValidUtf8);
  if (found == fields.end()) return false;
  const auto column = static_cast<size_t>(found - fields.begin());
  results.Reject(transaction, absl::StrCat(schema.columns[column], ": not UTF-8 text"));
  return true;
}

std::string PrintableReason(absl::string_view why) { return base::Printable(why, kMaxWhyBytes); }

OpenLines::OpenLines(const WorkItem& item, Results* results) : results_(results) {
  for (const Transaction& transaction : item.transactions()) {
    open_.emplace(transaction.line(), &transaction);
  }
  for (const Rejection& never_sent : results->rejections()) open_.erase(never_sent.line);
}

absl::Status OpenLines::Reject(int64_t line, absl::string_view reason) {
  const auto transaction = open_.find(line);
  if (transaction == open_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("line: ", line, " is no line of the item, or was rejected before"));
  }
  results_->Reject(*transaction->second, reason);
  open_.erase(transaction);
  return absl::OkStatus();
}

absl::Status OpenLines::AddOutput(int64_t line, std::vector<std::string> fields) {
  const auto transaction = open_.find(line);
  if (transaction == open_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("line: ", line, " is no line of the item, or is rejected"));
  }
  const absl::Status added = results_->AddOutput(*transaction->second, std::move(fields));
  return added.ok() ? added : absl::OutOfRangeError(added.message());
}

absl::StatusOr<Outcome> ConcludeOk(Results& results) {
  results.CountAllExceptRejected();
  MUSTER_RETURN_IF_ERROR(results.Verdict());
  return Outcome::Ok();
}

}  // namespace muster::handler
