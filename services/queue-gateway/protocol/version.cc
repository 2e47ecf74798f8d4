// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/version.h"

#include <string>

#include "absl/time/civil_time.h"
#include "muster/base/lru_map.h"

namespace muster::queue_gateway::protocol {

bool IsVersion(absl::string_view version) {
  constexpr size_t kDateBytes = 10;
  constexpr size_t kRecentVersions = 4;  // one for each SDK
  if (version.size() != kDateBytes) return false;
  thread_local base::LruMap<std::string, bool> recent(kRecentVersions);
  const auto [is_version, is_new] = recent.FindOrAdd(std::string(version));
  if (is_new) {
    absl::CivilDay day;
    // Only the form that is written back the same is a date of ten characters.
    *is_version = absl::ParseCivilTime(version, &day) && absl::FormatCivilTime(day) == version;
  }
  return *is_version;
}

}  // namespace muster::queue_gateway::protocol
