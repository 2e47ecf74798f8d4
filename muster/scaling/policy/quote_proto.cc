// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/quote_proto.h"

#include <string>
#include <utility>

#include "muster/base/proto_time.h"

namespace muster::scaling::policy {

QuotedWork FromProto(const v1::SimulateRequest& request) {
  QuotedWork work;
  work.items = request.items();
  if (request.has_sla()) work.sla = base::FromProto(request.sla());
  if (request.items_per_second() != 0) work.items_per_second = request.items_per_second();
  return work;
}

v1::SimulateRequest ToProto(const QuotedWork& work) {
  v1::SimulateRequest request;
  request.set_items(work.items);
  if (work.sla.has_value()) *request.mutable_sla() = base::ToProto(*work.sla);
  request.set_items_per_second(work.items_per_second.value_or(0));
  return request;
}

v1::SimulateResponse ToProto(absl::string_view target, const Quotation& quotation) {
  v1::SimulateResponse response;
  response.set_target(std::string(target));
  response.set_feasible(quotation.feasible);
  if (quotation.finish != absl::InfiniteFuture()) {
    *response.mutable_finish() = base::ToProto(quotation.finish);
  }
  *response.mutable_deadline() = base::ToProto(quotation.deadline);
  if (quotation.late_by != absl::InfiniteDuration()) {
    *response.mutable_late_by() = base::ToProto(quotation.late_by);
  }
  response.set_replicas_now(quotation.replicas_now);
  response.set_replicas(quotation.replicas);
  response.set_needs(quotation.needs);
  response.set_max(quotation.max);
  response.set_replica_seconds(quotation.replica_seconds);
  if (quotation.shortest_sla.has_value()) {
    *response.mutable_shortest_sla() = base::ToProto(*quotation.shortest_sla);
  }
  response.set_explanation(quotation.explanation);
  return response;
}

v1::QuoteResponse QuoteOf(v1::SimulateResponse simulated, int64_t items) {
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

}  // namespace muster::scaling::policy
