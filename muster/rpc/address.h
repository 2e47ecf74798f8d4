// SPDX-License-Identifier: Apache-2.0

// Where a server listens: HOST:PORT, such as "127.0.0.1:7700", "[::]:7700" or "localhost:0".
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::rpc {

inline constexpr int kMaxPort = 65535;

struct Address {
  std::string host;  // without the brackets of IPv6
  int port = 0;      // 0: the system picks one that is free

  std::string ToString() const;
  // Whether only this machine can reach it: "localhost", 127.0.0.1 and ::1. Other names are not
  // looked up, because their meaning may change. gRPC's local transport does not know the rest of
  // 127.0.0.0/8.
  bool IsLoopback() const;
};

// InvalidArgument saying what is wrong with it.
absl::StatusOr<Address> ParseAddress(absl::string_view text);

}  // namespace muster::rpc
