// What a server says of itself to whoever connects, before it asks who that is. nats.c keeps it to
// itself, and no request that every user may make asks for it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::nats {

// HOST:PORT of each server in `urls`, "nats://user:secret@host:4222,…", without who that is.
std::vector<std::string> AddressesIn(absl::string_view urls);

// The version, as "2.10.27", of the server at `address`. Unavailable: nobody answers within
// `timeout`, or what answers greets nobody, as a server does whose TLS comes first.
absl::StatusOr<std::string> ServerVersion(const std::string& address, absl::Duration timeout);

// Whether a server of that version can be told to sync its disk before it acknowledges
// (sync_interval: always), which is from 2.10 on. Of what is no version it is believed.
bool CanSyncAlways(absl::string_view version);

}  // namespace muster::nats
