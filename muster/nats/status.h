// SPDX-License-Identifier: Apache-2.0

// Conversion of the statuses of nats.c to absl::Status.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::nats {

// `nats_status` is a natsStatus; `context` goes before the message and names what was being done.
//   Unavailable         there is no connection, or no answer: the outcome is unknown, try again
//   InvalidArgument     a subject, URL, file or payload that NATS does not take
//   PermissionDenied    the server does not let us, or does not know us
//   NotFound            what was asked for is not there
//   ResourceExhausted   memory, or a buffer while there is no connection
//   Internal            anything else
absl::Status ToStatus(int nats_status, absl::string_view context);

// Makes, and recognises, the Unavailable of a request without a subscriber: the server is there,
// but the requested service is not.
absl::Status NobodyListens(absl::string_view subject);
bool IsNobodyListens(const absl::Status& status);

}  // namespace muster::nats
