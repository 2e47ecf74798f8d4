// DesiredState: what the agents of a host have ordered, kept in a file so that a stale order is
// refused, and a replica replaced, by a process that has heard none of it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::scaling::actuator::process {

struct DesiredState {
  int64_t highest_token = 0;
  std::map<std::string, int, std::less<>> wanted;  // replicas, by target

  int WantedOf(std::string_view target) const;

  friend bool operator==(const DesiredState&, const DesiredState&) = default;
};

// Stored as one line of JSON. DataLoss: not such a line.
std::string EncodeDesiredState(const DesiredState& orders);
absl::StatusOr<DesiredState> DecodeDesiredState(absl::string_view text);

// No file: no orders. DataLoss naming the file: it was not written by muster. Then nobody knows
// which agent leads, so nothing is started or let go until a person has removed it.
absl::StatusOr<DesiredState> ReadDesiredState(const std::string& path);
absl::Status WriteDesiredState(const std::string& path, const DesiredState& orders);

}  // namespace muster::scaling::actuator::process
