// What muster sends and hears, as nats.c has it. Only this folder includes it: no nats.c type
// leaves.
#pragma once

#include <nats/nats.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/nats/message.h"

namespace muster::nats {

struct DestroyMessage {
  void operator()(natsMsg* message) const { natsMsg_Destroy(message); }
};
using MessagePtr = std::unique_ptr<natsMsg, DestroyMessage>;

Incoming IncomingOf(natsMsg* message);
// `reply`: where an answer goes; empty: none is wanted.
absl::StatusOr<MessagePtr> MessageOf(const Outgoing& outgoing, const std::string& reply);

}  // namespace muster::nats
