// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/pop_receipt.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"

namespace muster::queue_gateway::operations {
namespace {

// GUIDs count in any case.
std::string CheckOf(absl::string_view message_id) {
  return base::Fingerprint(absl::AsciiStrToLower(message_id)).ToHex().substr(0, 8);
}

}  // namespace

std::string PopReceiptOf(const queue::Receipt& receipt, absl::string_view message_id) {
  return absl::StrCat(receipt, ".", CheckOf(message_id));
}

std::optional<queue::Receipt> ReceiptOf(absl::string_view pop_receipt,
                                        absl::string_view message_id) {
  const size_t dot = pop_receipt.rfind('.');
  if (dot == absl::string_view::npos || pop_receipt.substr(dot + 1) != CheckOf(message_id)) {
    return std::nullopt;
  }
  return queue::Receipt(pop_receipt.substr(0, dot));
}

}  // namespace muster::queue_gateway::operations
