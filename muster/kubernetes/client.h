// What a request to the API server is about, and its place in the API.
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

// InvalidArgument: a name in it is none, so that none can lead elsewhere in the API.
absl::Status Validate(const Address& address);
// "/apis/apps/v1/namespaces/muster/deployments/processor/scale"; of a valid address.
std::string PathOf(const Address& address);

// A value in a query, with what is no plain character as %XX.
std::string QueryEscaped(absl::string_view value);

// Fields of answers, read without trust: what is not there, or is of another kind, is the fallback.

using FieldPath = std::initializer_list<const char*>;

// nullptr: not there.
const nlohmann::json* FieldAt(const nlohmann::json& root, FieldPath path);

std::string TextAt(const nlohmann::json& root, FieldPath path);
int64_t IntegerAt(const nlohmann::json& root, FieldPath path, int64_t fallback = 0);
bool TruthAt(const nlohmann::json& root, FieldPath path);
// RFC 3339. InfinitePast: there is none.
absl::Time TimeAt(const nlohmann::json& root, FieldPath path);

// LineSplitter: lines out of pieces that end anywhere.

// Not thread-safe.
class LineSplitter {
 public:
  explicit LineSplitter(size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  // Hands each line that is whole, and not empty, to `on_line`; stops at its first error.
  // Unavailable: a line is too long.
  absl::Status Take(absl::string_view piece,
                    absl::FunctionRef<absl::Status(absl::string_view line)> on_line);

 private:
  const size_t max_line_bytes_;
  std::string begun_;
};

// Client: the few verbs of the Kubernetes API that muster needs, on JSON.

struct ClientOptions {
  absl::Duration attempt_limit = kAttemptLimit;
  absl::Duration call_limit = kCallLimit;
  int max_attempts = kMaxAttempts;
};

// Thread-safe. Errors as ToStatus (api_status.h) has them, save that one which the API server may
// recover from comes only after some attempts, with what it asks for in between. What waits longer
// than a call may take is answered at once: ResourceExhausted where the server asks to slow down,
// Unavailable where it does not answer. InvalidArgument: a name is none. Cancelled: `stop` was
// requested.
//
// An attempt whose answer was lost may have been carried out, and is made again: a write names the
// version that it is based upon, or is one that may be made twice.
class Client {
 public:
  // `clock` is not owned. InvalidArgument: `access` is none.
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

  // Hears each event of a watch, {"type": …, "object": …}; an error ends it, and is returned.
  using OnEvent = absl::FunctionRef<absl::Status(const nlohmann::json& event)>;
  // One watch, one attempt: until the server ends it (OK), it breaks, or `stop`. `query` says from
  // where.
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
  // `asked`: for how long the server asks to be left alone before the next one.
  absl::StatusOr<nlohmann::json> Attempt(const Call& call, absl::Duration limit,
                                         const std::stop_token& stop, absl::Duration* asked);

  const std::unique_ptr<HttpClient> http_;
  base::Clock* const clock_;  // not owned
  const ClientOptions options_;
};

}  // namespace muster::kubernetes
