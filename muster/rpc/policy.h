// SPDX-License-Identifier: Apache-2.0

// Policy: which callers may call which methods. A YAML file:
//
//   roles:
//     - name: operators
//       members: ["cn:ops", "san:ops.example.org"]        # of the client's certificate
//       methods: ["muster.v1.QueueService/*", "muster.v1.*/Get*"]
//     - name: readers
//       members: [authenticated]                          # any accepted certificate
//       methods: ["muster.v1.ReportService/*"]
//     - name: this-machine
//       members: [loopback]                               # plaintext, which only loopback has
//       methods: ["*"]
//
// What no role allows is denied. In a method, "*" stands for any run of characters.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::rpc {

// A caller, as far as the transport proves its identity.
struct Caller {
  bool loopback = false;  // plaintext from this machine
  // From the client's certificate; empty unless one was accepted.
  std::string common_name;
  std::vector<std::string> alternative_names;

  bool authenticated() const { return !common_name.empty() || !alternative_names.empty(); }
  // For people: "cn:ops", "loopback", "a caller without a certificate".
  std::string ToString() const;
};

struct PolicyRole {
  std::string name;
  std::vector<std::string> members;  // "cn:…", "san:…", "authenticated", "loopback"
  std::vector<std::string> methods;  // globs over "package.Service/Method"
};

struct Policy {
  std::vector<PolicyRole> roles;

  // PermissionDenied naming the method ("package.Service/Method") and the caller, unless a role
  // allows it. Health is open to all: probes have no certificates.
  absl::Status Check(const Caller& caller, absl::string_view method) const;
};

// InvalidArgument: "FILE:LINE:COLUMN: what is wrong", for the first mistake: no YAML, a key that is
// unknown, missing or there twice, a member that is none, a limit (limits.h). FILE is `file_name`.
absl::StatusOr<Policy> ParsePolicy(absl::string_view text, absl::string_view file_name);

// The text of a policy file. InvalidArgument: it cannot be read.
absl::StatusOr<std::string> ReadPolicyText(const std::string& path);

// Both of them. InvalidArgument also when the file cannot be read.
absl::StatusOr<Policy> LoadPolicy(const std::string& path);

}  // namespace muster::rpc
