// Which URLs lead to a NATS server.
#pragma once

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace muster::backend {

// "nats://host:4222", or "tls://host:4222" for an encrypted connection; several servers of one
// cluster with commas between.
inline bool IsNatsUrl(absl::string_view url) {
  return absl::StartsWith(url, "nats://") || absl::StartsWith(url, "tls://");
}

}  // namespace muster::backend
