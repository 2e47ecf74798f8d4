// SPDX-License-Identifier: Apache-2.0

// ServerOptions: the services that a command works with, and how to reach them.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace muster::cli {

struct ServerOptions {
  std::string address;     // of an initiator; empty: none, commands work on a data directory
  std::string controller;  // empty: the one that the initiator knows
  std::string tls_roots;
  std::string tls_certificate;
  std::string tls_key;
  // What a call may take; nullopt: rpc::kDefaultCallTimeout, and more for a report.
  std::optional<absl::Duration> timeout;

  bool named() const { return !address.empty(); }
};

}  // namespace muster::cli
