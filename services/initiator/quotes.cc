#include "services/initiator/quotes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/proto_time/proto_time.h"
#include "muster/rpc/status.h"
#include "muster/wire/queue_names.h"
#include "services/initiator/job_lookup.h"

namespace muster::initiator {
namespace {

constexpr int64_t kMaxQuotedTransactions = 10'000'000'000;

absl::Status ValidateQuote(const v1::QuoteRequest& request) {
  if (request.job().empty()) return rpc::BadField("job", "must not be empty");
  if (request.transactions() < 1 || request.transactions() > kMaxQuotedTransactions) {
    return rpc::BadField("transactions",
                         absl::StrCat("must be within 1 to ", kMaxQuotedTransactions));
  }
  if (request.has_sla() && proto_time::FromProto(request.sla()) <= absl::ZeroDuration()) {
    return rpc::BadField("sla", "must be above 0");
  }
  return absl::OkStatus();
}

v1::QuoteResponse QuoteFrom(v1::SimulateResponse simulated, int64_t items) {
  v1::QuoteResponse quote;
  quote.set_items(items);
  quote.set_feasible(simulated.feasible());
  if (simulated.has_finish()) quote.mutable_finish()->Swap(simulated.mutable_finish());
  if (simulated.has_deadline()) quote.mutable_deadline()->Swap(simulated.mutable_deadline());
  if (simulated.has_late_by()) quote.mutable_late_by()->Swap(simulated.mutable_late_by());
  quote.set_replicas_now(simulated.replicas_now());
  quote.set_replicas(simulated.replicas());
  quote.set_needs(simulated.needs());
  quote.set_max(simulated.max());
  quote.set_replica_seconds(simulated.replica_seconds());
  if (simulated.has_shortest_sla()) {
    quote.mutable_shortest_sla()->Swap(simulated.mutable_shortest_sla());
  }
  quote.set_explanation(std::move(*simulated.mutable_explanation()));
  return quote;
}

}  // namespace

absl::StatusOr<v1::QuoteResponse> Quotes::Quote(const v1::QuoteRequest& request,
                                                absl::Duration timeout) {
  MUSTER_RETURN_IF_ERROR(ValidateQuote(request));
  MUSTER_ASSIGN_OR_RETURN(const job::JobDefinition job, FindJob(jobs_, request.job()));
  const int64_t per_item = job.item.transactions;
  v1::SimulateRequest simulate;
  // All partitions belong to the target of the first one.
  simulate.set_queue(wire::InputQueue(account_, job.name, 0).name);
  simulate.set_items((request.transactions() + per_item - 1) / per_item);
  if (request.has_sla()) *simulate.mutable_sla() = request.sla();
  auto simulated =
      agent_->Unary<v1::SimulateResponse>(&v1::ScalingService::Stub::Simulate, simulate, timeout);
  MUSTER_RETURN_IF_ERROR(base::Annotate(simulated.status(), absl::StrCat("job '", job.name, "'")));
  return QuoteFrom(*std::move(simulated), simulate.items());
}

}  // namespace muster::initiator
