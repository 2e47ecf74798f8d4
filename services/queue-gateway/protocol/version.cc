// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/version.h"

#include "absl/time/civil_time.h"

namespace muster::queue_gateway::protocol {

bool IsVersion(absl::string_view version) {
  absl::CivilDay day;
  // Only the form that is written back the same is a date of ten characters.
  constexpr size_t kDateBytes = 10;
  return version.size() == kDateBytes && absl::ParseCivilTime(version, &day) &&
         absl::FormatCivilTime(day) == version;
}

}  // namespace muster::queue_gateway::protocol
