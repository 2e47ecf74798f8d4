// SPDX-License-Identifier: Apache-2.0

// The messages to and from a handler over gRPC. proto/muster/v1/handler_service.proto defines them.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/handler/handler.h"
#include "muster/v1/handler_service.pb.h"

namespace muster::handler::grpc {

v1::WorkRequest EncodeHello(const handler::JobSchema& schema,
                            const std::map<std::string, std::string>& parameters,
                            absl::string_view processor);

// Without deadlines. A transaction that is not UTF-8 is rejected in `results` and left out.
v1::WorkRequest EncodeItem(const handler::JobSchema& schema, const handler::WorkItem& item,
                           handler::Results& results);
// Sets the deadline of the answer: `allowed` from `now` on.
void SetDeadline(absl::Duration allowed, absl::Time now, v1::HandlerItem* item);

v1::WorkRequest EncodeAbandon(absl::string_view item);

// InvalidArgument: the message breaks the contract.
absl::Status CheckReady(const v1::Ready& ready);

// Puts the groups and rejections of an answer about `item` into `results`, where the transactions
// that were not sent are rejected already. InvalidArgument naming the wrong place in the answer,
// OutOfRange naming that of a value that the job's measures or outputs cannot hold; the caller must
// then discard `results`.
absl::StatusOr<handler::Outcome> DecodeAnswer(const v1::HandlerAnswer& answer,
                                              const handler::JobSchema& schema,
                                              const handler::WorkItem& item,
                                              handler::Results& results);

}  // namespace muster::handler::grpc
