// What an API server's answer means in muster's terms.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/kubernetes/http_client.h"
#include "muster/kubernetes/resource.h"

namespace muster::kubernetes {

// OK for 2xx. `verb` is the role's: "get", "update".
//   PermissionDenied    403, naming verb and resource; 401, the server does not know us
//   NotFound            404
//   AlreadyExists       409 upon a create
//   Aborted             409: somebody else was first; read again
//   OutOfRange          410: what was asked for is too long ago
//   InvalidArgument     400, 422
//   ResourceExhausted   429, with what base::RetryAfter tells
//   Unavailable         5xx, and whatever a sound server does not answer
absl::Status ToStatus(const HttpAnswer& answer, const std::string& verb, const Address& address);

// For how long the server asks to be left alone, by its header or in its words; zero: it does not.
absl::Duration RequestedRetryDelay(const HttpAnswer& answer);

}  // namespace muster::kubernetes
