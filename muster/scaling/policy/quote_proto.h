// SPDX-License-Identifier: Apache-2.0

// Conversions for ScalingService.Simulate. A service answers the call with
//
//   MUSTER_ASSIGN_OR_RETURN(const Quotation quotation,
//                           scaling::policy::Quote(scaling::policy::FromProto(request), seen,
//                           options));
//   *response = scaling::policy::ToProto(target, quotation);
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "muster/scaling/policy/quote.h"
#include "muster/v1/batch_service.pb.h"
#include "muster/v1/scaling_service.pb.h"

namespace muster::scaling::policy {

// Checks nothing; scaling::policy::Quote does.
QuotedWork FromProto(const v1::SimulateRequest& request);
v1::SimulateRequest ToProto(const QuotedWork& work);

v1::SimulateResponse ToProto(absl::string_view target, const Quotation& quotation);

// The quote for a batch that is split into `items` items, from the simulation's result.
v1::QuoteResponse QuoteOf(v1::SimulateResponse simulated, int64_t items);

}  // namespace muster::scaling::policy
