// SPDX-License-Identifier: Apache-2.0

// FindTimeZone: the time zones of the system's tzdata.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::base {

// The time zone of that name. InvalidArgument: no zone that means the same on each machine has it.
// FailedPrecondition: this machine has no time zone data, so that it knows no zone but UTC. Both
// say what to do, and begin so that they may follow a field's name.
absl::StatusOr<absl::TimeZone> FindTimeZone(absl::string_view name);

}  // namespace muster::base
