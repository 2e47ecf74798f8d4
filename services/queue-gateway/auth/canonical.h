// SPDX-License-Identifier: Apache-2.0

// The canonical forms of a request that shared keys sign; shared_key.h draws them whole. Each
// function answers the forms that clients make, the usual one first, and none twice.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "services/queue-gateway/auth/request.h"

namespace muster::queue_gateway::auth {

// The eleven lines between the method and the x-ms-* headers, each with its line feed.
std::vector<std::string> SignedLines(const SignedRequest& request);

// The three lines of the lite form.
std::vector<std::string> LiteLines(const SignedRequest& request);

// One line for each x-ms-* header: "name:value\n". Values of a repeated header are joined by ",".
// Before version 2016-05-31 without headers that are empty.
std::vector<std::string> CanonicalHeaders(const SignedRequest& request);

// "/ACCOUNT/PATH" and the parameters: one line each with `with_all_parameters`, else "?comp=…"
// only. Values of a repeated parameter are sorted and joined by ",".
std::vector<std::string> CanonicalResources(const SignedRequest& request, bool with_all_parameters);

// Unauthenticated: another request could have the same canonical form. A line feed in a parameter,
// or a colon in its name, would make one parameter look like two; a header that decides what is
// signed is there twice.
absl::Status CheckUnambiguous(const SignedRequest& request);

// Which of two header names comes first in the collation that the service and its clients sort by:
// "_" before digits before letters, and dashes count only where nothing else differs.
bool CollatesBefore(absl::string_view a, absl::string_view b);

// "Mon, 27 Oct 2008 17:00:25 GMT"
std::string FormatHttpDate(absl::Time time);

}  // namespace muster::queue_gateway::auth
