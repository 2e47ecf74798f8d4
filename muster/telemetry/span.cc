// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/span.h"

namespace muster::telemetry {

uint64_t NewSpanId() { return base::NewTrace(0).parent; }

}  // namespace muster::telemetry
