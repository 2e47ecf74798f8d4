// CheckNats: whether a NATS server keeps what muster stores on it as it should.
#pragma once

#include <string>

#include "cli/doctor/finding.h"
#include "muster/queue/queue_store.h"

namespace muster::cli {

// What the services were told of their server, as their options of these names.
struct NatsCheckOptions {
  std::string url;  // empty: nobody looks
  std::string bucket = "muster";
  int replicas = 1;
  queue::Survives ack_survives = queue::Survives::kProcess;
};

// Changes nothing. Without a URL it says that nobody has looked.
Findings CheckNats(const NatsCheckOptions& care);

}  // namespace muster::cli
