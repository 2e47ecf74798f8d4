// SPDX-License-Identifier: Apache-2.0

// PolicyGuard: checks every call of a server against a policy file, before the service sees it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/rpc/policy.h"

namespace muster::rpc {

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
  PolicyGuard(std::string path, base::Clock* clock) : path_(std::move(path)), clock_(clock) {}

  std::shared_ptr<const Policy> Current() ABSL_LOCKS_EXCLUDED(mu_);

  const std::string path_;
  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  // Shared: calls go on with the one that they began with.
  std::shared_ptr<const Policy> policy_ ABSL_GUARDED_BY(mu_);
  std::optional<std::string> version_ ABSL_GUARDED_BY(mu_);
  bool was_unreadable_ ABSL_GUARDED_BY(mu_) = false;
  absl::Duration next_look_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
};

}  // namespace muster::rpc
