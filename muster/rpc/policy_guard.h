// PolicyGuard: holds every call of a server against a policy file, before its service hears of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/rpc/policy.h"

namespace muster::rpc {

// Thread-safe. A file that changes holds within kPolicyRefresh; one that becomes wrong is logged as
// an error, and what it said before goes on to hold.
class PolicyGuard final : public grpc::AuthMetadataProcessor {
 public:
  // As LoadPolicy. `clock` is not owned.
  static absl::StatusOr<std::shared_ptr<PolicyGuard>> Open(const std::string& path,
                                                           base::Clock* clock);

  absl::Status Check(const Caller& caller, absl::string_view method);

  // For gRPC, which asks at the beginning of each call.
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override;
  // It is quick: the call's own thread may do it.
  bool IsBlocking() const override { return false; }

 private:
  // What tells a file from the one that replaces it.
  struct Version {
    uint64_t inode = 0;
    int64_t changed_ns = 0;  // which nobody can set back, unlike the time of the last write
    int64_t bytes = 0;

    friend bool operator==(const Version&, const Version&) = default;
  };

  PolicyGuard(std::string path, base::Clock* clock) : path_(std::move(path)), clock_(clock) {}

  static std::optional<Version> VersionOf(const std::string& path);
  std::shared_ptr<const Policy> Current();

  const std::string path_;
  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  // Shared: calls go on with the one that they began with.
  std::shared_ptr<const Policy> policy_ ABSL_GUARDED_BY(mu_);
  std::optional<Version> version_ ABSL_GUARDED_BY(mu_);
  absl::Duration next_look_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
};

}  // namespace muster::rpc
