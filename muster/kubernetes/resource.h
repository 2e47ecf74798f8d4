// What a request to the API server is about, and its place in the API.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

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

}  // namespace muster::kubernetes
