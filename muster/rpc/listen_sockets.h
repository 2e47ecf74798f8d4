// SPDX-License-Identifier: Apache-2.0

// ListenSockets: the sockets on which a server listens. They outlive a server that hands them to
// the next one: connections wait in between, and no other program gets the port.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "muster/os/file_descriptor.h"
#include "muster/rpc/address.h"

namespace muster::rpc {

struct ListenSockets {
  Address address;                          // with the port that was picked
  std::vector<os::FileDescriptor> sockets;  // at least one; connections wait at them
};

// Listens on all that the host of `address` stands for. Unavailable: in use, or not this
// machine's.
absl::StatusOr<ListenSockets> ListenOn(const Address& address);

}  // namespace muster::rpc
