// SPDX-License-Identifier: Apache-2.0

// The version of a NATS server, from the greeting that it sends to every client before it asks for
// credentials. nats.c does not expose it, and no request that every user may make returns it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::nats {

// Returns HOST:PORT of each server in `urls`, "nats://user:secret@host:4222,…", without user and
// secret.
std::vector<std::string> AddressesIn(absl::string_view urls);

// Returns the version, as "2.10.27", of the server at `address`. Unavailable: no server answers
// within `timeout`, or it sends no greeting, as a server does that starts with TLS.
absl::StatusOr<std::string> ServerVersion(const std::string& address, absl::Duration timeout);

// Whether a server of that version can be set to sync its disk before it acknowledges
// (sync_interval: always), as versions from 2.10 on can. True for a text that is no version.
bool CanSyncAlways(absl::string_view version);

}  // namespace muster::nats
