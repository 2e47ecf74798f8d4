// SPDX-License-Identifier: Apache-2.0

// Pop receipts: the receipts of the engine, each tied to the id of its message.
//
//   RECEIPT.CHECK    CHECK: 8 hexadecimal digits of the fingerprint of the message's id
//
// The API asks for the id and the receipt of a message together. The engine's receipt names its
// message alone; the check finds a caller that took the id of another one. It is no secret.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/queue/queue_store.h"

namespace muster::queue_gateway::operations {

// Needs no escape in a URL.
std::string PopReceiptOf(const queue::Receipt& receipt, absl::string_view message_id);
// nullopt: it was not given for that message.
std::optional<queue::Receipt> ReceiptOf(absl::string_view pop_receipt,
                                        absl::string_view message_id);

}  // namespace muster::queue_gateway::operations
