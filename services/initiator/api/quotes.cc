// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/quotes.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/job/job.h"
#include "muster/rpc/status.h"
#include "muster/scaling/policy/quote_proto.h"
#include "services/initiator/api/measured_quote.h"

namespace muster::initiator::api {
namespace {

constexpr int64_t kMaxQuotedTransactions = 10'000'000'000;

absl::Status ValidateQuote(const v1::QuoteRequest& request) {
  if (request.job().empty()) return rpc::BadField("job", "must not be empty");
  if (request.transactions() < 1 || request.transactions() > kMaxQuotedTransactions) {
    return rpc::BadField("transactions",
                         absl::StrCat("must be within 1 to ", kMaxQuotedTransactions));
  }
  if (request.has_sla() && base::FromProto(request.sla()) <= absl::ZeroDuration()) {
    return rpc::BadField("sla", "must be above 0");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::QuoteResponse> Quotes::Quote(const v1::QuoteRequest& request,
                                                absl::Duration timeout) {
  MUSTER_RETURN_IF_ERROR(ValidateQuote(request));
  MUSTER_ASSIGN_OR_RETURN(const job::JobDefinition job,
                          sources_.jobs->GetDefinition(request.job()));
  const int64_t per_item = job.item.transactions;
  v1::SimulateRequest simulate;
  // All partitions belong to the target of the first one.
  simulate.set_queue(item::InputQueue(account_, job.name, 0).name);
  simulate.set_items((request.transactions() + per_item - 1) / per_item);
  if (request.has_sla()) *simulate.mutable_sla() = request.sla();
  auto simulated = sources_.agent->Unary<v1::SimulateResponse>(&v1::ScalingService::Stub::Simulate,
                                                               simulate, timeout);
  if (absl::IsUnavailable(simulated.status())) {
    absl::StatusOr<v1::QuoteResponse> measured =
        MeasuredQuote(request, job, sources_.ledger, sources_.clock->Now());
    if (!absl::IsNotFound(measured.status())) return measured;
  }
  MUSTER_RETURN_IF_ERROR(base::Annotate(simulated.status(), absl::StrCat("job '", job.name, "'")));
  return scaling::policy::QuoteOf(*std::move(simulated), simulate.items());
}

}  // namespace muster::initiator::api
