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

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

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

// The same for a file. InvalidArgument also when it cannot be read.
absl::StatusOr<Policy> LoadPolicy(const std::string& path);

// PolicyGuard: checks every call of a server against a policy file, before the service sees it.

// Thread-safe. A changed file takes effect within kPolicyRefresh; if it is invalid, or cannot be
// read, that is logged as an error, and the previous policy stays in force until one can be read.
class PolicyGuard final : public grpc::AuthMetadataProcessor {
 public:
  // As LoadPolicy. `clock` is not owned.
  static absl::StatusOr<std::shared_ptr<PolicyGuard>> Open(const std::string& path,
                                                           base::Clock* clock);

  absl::Status Check(const Caller& caller, absl::string_view method) ABSL_LOCKS_EXCLUDED(mu_);

  // For gRPC, which asks at the beginning of each call.
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // It is quick: the call's own thread may do it.
  bool IsBlocking() const override { return false; }

 private:
  // Distinguishes a file from the one that replaces it.
  struct Version {
    uint64_t inode = 0;
    int64_t changed_ns = 0;  // ctime: cannot be set back, unlike mtime
    int64_t bytes = 0;

    friend bool operator==(const Version&, const Version&) = default;
  };

  PolicyGuard(std::string path, base::Clock* clock) : path_(std::move(path)), clock_(clock) {}

  static std::optional<Version> VersionOf(const std::string& path);
  std::shared_ptr<const Policy> Current() ABSL_LOCKS_EXCLUDED(mu_);

  const std::string path_;
  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  // Shared: calls go on with the one that they began with.
  std::shared_ptr<const Policy> policy_ ABSL_GUARDED_BY(mu_);
  std::optional<Version> version_ ABSL_GUARDED_BY(mu_);
  bool was_unreadable_ ABSL_GUARDED_BY(mu_) = false;
  absl::Duration next_look_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
};

}  // namespace muster::rpc
