// SPDX-License-Identifier: Apache-2.0

// Where an API server is, and how muster authenticates itself to it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::kubernetes {

// Bytes from a file, which is read again each time, or from a configuration.
struct CredentialSource {
  std::string file = "";
  std::string data = "";

  bool empty() const { return file.empty() && data.empty(); }
};

struct Access {
  std::string server;          // "https://10.0.0.1:443", without a slash at its end
  CredentialSource authority;  // the certificates that sign the server's; none: the machine's
  bool skip_verification = false;
  CredentialSource certificate;  // the client's own, with its key
  CredentialSource key;
  CredentialSource token;  // a bearer token; tokens in files are rotated
  std::string default_namespace = "default";
};

// Reads one variable of the environment; nullopt: it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// Where a pod finds what it may know of its cluster.
inline constexpr absl::string_view kServiceAccountFolder =
    "/var/run/secrets/kubernetes.io/serviceaccount";

// The access that the cluster gives each of its pods. NotFound: this process runs in no pod.
absl::StatusOr<Access> InClusterAccess(const Environment& environment,
                                       absl::string_view service_account = kServiceAccountFolder);

// A kubeconfig or several, as kubectl reads them: `files` with colons between; the first file that
// sets a value wins. Uses the current context, unless `context` names one.
//   NotFound            none of the files is there, or they do not say what the context names
//   InvalidArgument     a file is no kubeconfig; the message names file and line
//   Unimplemented       it asks for what muster does not do (exec plug-ins, proxies, basic
//                       authentication); the message says what to do instead
absl::StatusOr<Access> KubeconfigAccess(absl::string_view files, absl::string_view context = "");

// The kubeconfig that is named, the cluster that this process runs in, the files of KUBECONFIG, or
// ~/.kube/config: the first of these that is there.
absl::StatusOr<Access> FindAccess(const std::string& kubeconfig, const Environment& environment,
                                  absl::string_view service_account = kServiceAccountFolder);

// OK when requests may be sent with it: the URL is valid, and no secret would travel in plain text,
// except on loopback.
absl::Status Validate(const Access& access);

// What `material` holds now. NotFound: its file is not there; InvalidArgument: it is too large.
absl::StatusOr<std::string> Read(const CredentialSource& material);

// The token as it goes into a header: without blanks around it. "" where there is none.
// Unauthenticated: there is one, but it cannot be read, or is none.
absl::StatusOr<std::string> CurrentToken(const Access& access);

}  // namespace muster::kubernetes
