// CheckNats: whether a NATS server keeps what muster stores on it as it should.
#pragma once

#include <string>

#include "cli/finding.h"

namespace muster::cli {

// Changes nothing. `replicas`: of what is stored, as the services' --replicas.
Findings CheckNats(const std::string& url, int replicas);

}  // namespace muster::cli
