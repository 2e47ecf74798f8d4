// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/measured_quote.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/item/batch_filter.h"

namespace muster::initiator::api {
namespace {

using ledger::BatchState;

constexpr uint64_t kNewest = std::numeric_limits<uint64_t>::max();
// Open batches that are looked at: there are seldom more of one job.
constexpr size_t kMaxAhead = 1000;

// What the last batches of the job were like.
struct Speed {
  int batches = 0;
  double transactions = 0;
  double seconds = 0;
  double shortest = std::numeric_limits<double>::infinity();  // seconds

  double per_second() const { return transactions / seconds; }
};

absl::StatusOr<Speed> Measure(const std::string& job, ledger::BatchLedger* ledger, absl::Time now) {
  const item::BatchFilter filter{.job = job, .states = {BatchState::kComplete}};
  MUSTER_ASSIGN_OR_RETURN(const ledger::BatchPage page,
                          item::FindBatches(*ledger, filter, kNewest, kMeasuredBatches, now));
  Speed speed;
  for (const ledger::Batch& batch : page.batches) {
    if (batch.transactions == 0 || !batch.completed.has_value()) continue;
    const double seconds = absl::ToDoubleSeconds(*batch.completed - batch.created);
    if (seconds <= 0) continue;  // a clock was set back
    ++speed.batches;
    speed.transactions += static_cast<double>(batch.transactions);
    speed.seconds += seconds;
    speed.shortest = std::min(speed.shortest, seconds);
  }
  if (speed.batches > 0) return speed;
  return absl::NotFoundError("no batch of the job was complete yet");
}

// The transactions of the job's open batches. Some may be counted already.
absl::StatusOr<uint64_t> Ahead(const std::string& job, ledger::BatchLedger* ledger,
                               absl::Time now) {
  const item::BatchFilter filter{.job = job, .states = {BatchState::kOpen, BatchState::kSealed}};
  MUSTER_ASSIGN_OR_RETURN(const ledger::BatchPage page,
                          item::FindBatches(*ledger, filter, kNewest, kMaxAhead, now));
  uint64_t transactions = 0;
  for (const ledger::Batch& batch : page.batches) transactions += batch.transactions;
  return transactions;
}

void SetPromise(const std::optional<absl::Duration>& sla, absl::Time now, absl::Time finish,
                v1::QuoteResponse* quote) {
  quote->set_feasible(!sla.has_value() || finish <= now + *sla);
  if (!sla.has_value()) return;
  *quote->mutable_deadline() = base::ToProto(now + *sla);
  *quote->mutable_late_by() = base::ToProto(std::max(finish - now - *sla, absl::ZeroDuration()));
}

std::string Explanation(const Speed& speed, uint64_t ahead) {
  return absl::StrCat(
      "No scaling agent makes this forecast: it is from the measured speed of ",
      speed.batches == 1 ? "the job's last batch"
                         : absl::StrCat("the job's last ", speed.batches, " batches"),
      absl::StrFormat(", %.1f transactions/s from submit to end, with the workers that there were.",
                      speed.per_second()),
      ahead > 0 ? absl::StrCat(" ", ahead, " transactions of open batches come first.") : "");
}

}  // namespace

absl::StatusOr<v1::QuoteResponse> MeasuredQuote(const v1::QuoteRequest& request,
                                                const job::JobDefinition& job,
                                                ledger::BatchLedger* ledger, absl::Time now) {
  MUSTER_ASSIGN_OR_RETURN(const Speed speed, Measure(job.name, ledger, now));
  MUSTER_ASSIGN_OR_RETURN(const uint64_t ahead, Ahead(job.name, ledger, now));
  const double work = static_cast<double>(request.transactions()) + static_cast<double>(ahead);
  // No batch is faster than the shortest one was: starts and pauses cost a small one most.
  const absl::Duration takes = absl::Seconds(std::max(work / speed.per_second(), speed.shortest));
  const absl::Time finish = now + takes;
  v1::QuoteResponse quote;
  quote.set_items((request.transactions() + job.item.transactions - 1) / job.item.transactions);
  *quote.mutable_finish() = base::ToProto(finish);
  *quote.mutable_shortest_sla() = base::ToProto(takes);
  quote.set_measured_batches(speed.batches);
  std::optional<absl::Duration> sla = job.sla_max;
  if (request.has_sla()) sla = base::FromProto(request.sla());
  SetPromise(sla, now, finish, &quote);
  quote.set_explanation(Explanation(speed, ahead));
  return quote;
}

}  // namespace muster::initiator::api
