// DeadlinePolicy: the default policy. It grows a target when its queued work would miss a deadline,
// in one action, as late as patience allows; and lets replicas go when they have idled for as long
// as starting them again would cost. docs/scaling.md has the reasons and an example by hand.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "muster/scaling/policy/deadline_options.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

// InvalidArgument where Check refuses the options.
absl::StatusOr<std::unique_ptr<Policy>> MakeDeadlinePolicy(const DeadlineOptions& options);

}  // namespace muster::scaling::policy
