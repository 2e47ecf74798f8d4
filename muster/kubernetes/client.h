// SPDX-License-Identifier: Apache-2.0

// Client: the few verbs of the Kubernetes API that muster needs; and the parts that it is made of.
//
// Resource and Address: what a request is about, and its place in the API.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/kubernetes/access.h"
#include "muster/kubernetes/http_client.h"
#include "muster/kubernetes/limits.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::kubernetes {

struct Resource {
  std::string api;     // "api/v1", "apis/apps/v1"
  std::string plural;  // as in roles: "deployments"
};

inline const Resource kPods{"api/v1", "pods"};
inline const Resource kDeployments{"apis/apps/v1", "deployments"};
inline const Resource kStatefulSets{"apis/apps/v1", "statefulsets"};

// One object, or all of a kind where `name` is empty.
struct Address {
  Resource resource;
  std::string name_space;  // empty: the resource belongs to no namespace
  std::string name;
  std::string subresource;  // "scale", or none
};

// "deployments/scale", as a role names it.
std::string RoleName(const Address& address);
// "deployments/scale 'processor' in namespace 'muster'", for errors.
std::string Describe(const Address& address);

// InvalidArgument: a name in it is invalid; so no name can lead elsewhere in the API.
absl::Status Validate(const Address& address);
// "/apis/apps/v1/namespaces/muster/deployments/processor/scale"; of a valid address.
std::string PathOf(const Address& address);

// A value in a query, with all but plain characters as %XX.
std::string QueryEscaped(absl::string_view value);

// Reads fields of untrusted answers: a field that is absent, or of another type, gives the
// fallback.

using FieldPath = std::initializer_list<const char*>;

// nullptr: not there.
const nlohmann::json* FieldAt(const nlohmann::json& root, FieldPath path);

std::string TextAt(const nlohmann::json& root, FieldPath path);
int64_t IntegerAt(const nlohmann::json& root, FieldPath path, int64_t fallback = 0);
bool TruthAt(const nlohmann::json& root, FieldPath path);
// RFC 3339. InfinitePast: there is none.
absl::Time TimeAt(const nlohmann::json& root, FieldPath path);

// Client: the few verbs of the Kubernetes API that muster needs, on JSON.

struct ClientOptions {
  absl::Duration attempt_limit = kAttemptLimit;
  absl::Duration call_limit = kCallLimit;
  int max_attempts = kMaxAttempts;
};

// Thread-safe. Errors as ToStatus (client.cc). The client retries an error that may pass, with the
// waits that the API server asks for, and returns it only after the last attempt. If a wait would
// exceed the call's limit, it returns at once: ResourceExhausted if the server asks to slow down,
// Unavailable if it does not answer. InvalidArgument: a name is invalid. Cancelled: `stop` was
// requested.
//
// The client repeats an attempt even if it may have been carried out and only its answer was lost:
// so a write must name the version that it is based upon, or be safe to repeat.
class Client {
 public:
  // `clock` is not owned. InvalidArgument: `access` is invalid.
  static absl::StatusOr<std::unique_ptr<Client>> Open(Access access, base::Clock* clock,
                                                      ClientOptions options = ClientOptions());

  const std::string& default_namespace() const { return http_->access().default_namespace; }

  absl::StatusOr<nlohmann::json> Get(const Address& address, const std::stop_token& stop = {});
  // `query`: "labelSelector=app%3Dx", or nothing.
  absl::StatusOr<nlohmann::json> List(const Address& address, const std::string& query,
                                      const std::stop_token& stop = {});
  absl::StatusOr<nlohmann::json> Create(const Address& address, const nlohmann::json& object);
  absl::StatusOr<nlohmann::json> Update(const Address& address, const nlohmann::json& object);
  // A merge patch: null removes.
  absl::StatusOr<nlohmann::json> Patch(const Address& address, const nlohmann::json& patch);
  absl::Status Delete(const Address& address);

  // Gets each event of a watch, {"type": …, "object": …}; an error ends the watch, which returns
  // it.
  using OnEvent = absl::FunctionRef<absl::Status(const nlohmann::json& event)>;
  // One watch, one attempt: until the server ends it (OK), it breaks, or `stop`. `query` says where
  // to begin.
  absl::Status Watch(const Address& address, const std::string& query, OnEvent on_event,
                     const std::stop_token& stop);

 private:
  struct Call {
    const char* verb;
    const char* method;
    const Address& address;
    std::string query = "";
    std::string body = "";
    const char* content_type = "application/json";
  };

  Client(std::unique_ptr<HttpClient> http, base::Clock* clock, ClientOptions options);

  absl::StatusOr<nlohmann::json> Run(const Call& call, const std::stop_token& stop);
  // `asked`: how long the server asks to wait before the next attempt.
  absl::StatusOr<nlohmann::json> Attempt(const Call& call, absl::Duration limit,
                                         const std::stop_token& stop, absl::Duration* asked);

  const std::unique_ptr<HttpClient> http_;
  base::Clock* const clock_;  // not owned
  const ClientOptions options_;
};

}  // namespace muster::kubernetes
