// SPDX-License-Identifier: Apache-2.0

// CheckNats: checks whether a NATS server stores muster's streams as it should.
#pragma once

#include <string>

#include "cli/doctor/finding.h"
#include "muster/nats/connection.h"
#include "muster/queue/queue_store.h"

namespace muster::cli {

// The services' options of the same names.
struct NatsCheckOptions {
  std::string url;  // empty: CheckNats does not look
  nats::ConnectionOptions connection;
  std::string bucket = "muster";
  int replicas = 1;
  queue::Survives ack_survives = queue::Survives::kProcess;
};

// Changes nothing. Without a URL, its only finding is kUnknown.
Findings CheckNats(const NatsCheckOptions& care);

}  // namespace muster::cli
