// SPDX-License-Identifier: Apache-2.0

// The versions of the Queue Storage API, each the date of its release.
#pragma once

#include "absl/strings/string_view.h"

namespace muster::queue_gateway::protocol {

// What a request is taken for that names no version: put with PUT and a raw body, get base64.
inline constexpr char kFirstVersion[] = "2008-10-27";
// The newest that this gateway was written for: what a reply has to a request without a proper one.
inline constexpr char kNewestVersion[] = "2026-10-06";
// The first one in which a message may stay for longer than seven days.
inline constexpr char kLongLivesVersion[] = "2017-07-29";

// Whether `version` looks like one: YYYY-MM-DD. Any day counts: an SDK may be newer than the
// gateway, may name a day to come, and the Queue service has not changed since 2017.
bool IsVersion(absl::string_view version);

}  // namespace muster::queue_gateway::protocol
