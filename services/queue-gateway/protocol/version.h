// The versions of the Queue Storage API, each the date of its release.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::queue_gateway::protocol {

// What a request is taken for that names no version: put with PUT and a raw body, get base64.
inline constexpr char kFirstVersion[] = "2008-10-27";
// The newest that this gateway was written for: what a reply has to a request without a proper one.
inline constexpr char kNewestVersion[] = "2025-11-05";
// The first one in which a message may stay for longer than seven days.
inline constexpr char kLongLivesVersion[] = "2017-07-29";

// Whether `version` is that of a release. Later ones than this gateway knows count if their day has
// come: an SDK may be newer than the gateway, and the Queue service has not changed since 2017.
bool IsKnownVersion(absl::string_view version, absl::Time now);

}  // namespace muster::queue_gateway::protocol
