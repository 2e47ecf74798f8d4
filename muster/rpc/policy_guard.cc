// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/policy_guard.h"

#include <vector>

#include "absl/strings/strip.h"
#include "grpc/grpc_security_constants.h"
#include "grpcpp/security/auth_context.h"
#include "muster/base/file_version.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/status.h"

namespace muster::rpc {
namespace {

constexpr absl::string_view kLocalTransport = "local";

std::string ToString(const grpc::string_ref& text) { return {text.data(), text.size()}; }

std::vector<std::string> Properties(const grpc::AuthContext& context, const std::string& name) {
  std::vector<std::string> values;
  for (const grpc::string_ref& value : context.FindPropertyValues(name)) {
    values.push_back(ToString(value));
  }
  return values;
}

Caller CallerOf(const grpc::AuthContext& context) {
  Caller caller;
  for (const std::string& transport :
       Properties(context, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME)) {
    caller.loopback |= transport == std::string(kLocalTransport);
  }
  // gRPC tells the names of certificates that it has verified only.
  for (std::string& name : Properties(context, GRPC_X509_CN_PROPERTY_NAME)) {
    caller.common_name = std::move(name);
  }
  caller.alternative_names = Properties(context, GRPC_X509_SAN_PROPERTY_NAME);
  return caller;
}

}  // namespace

absl::StatusOr<std::shared_ptr<PolicyGuard>> PolicyGuard::Open(const std::string& path,
                                                               base::Clock* clock) {
  std::shared_ptr<PolicyGuard> guard(new PolicyGuard(path, clock));
  base::MutexLock lock(&guard->mu_);
  guard->version_ = base::FileVersion(path);
  MUSTER_ASSIGN_OR_RETURN(Policy policy, LoadPolicy(path));
  guard->policy_ = std::make_shared<const Policy>(std::move(policy));
  guard->next_look_ = clock->Monotonic() + kPolicyRefresh;
  return guard;
}

std::shared_ptr<const Policy> PolicyGuard::Current() {
  base::MutexLock lock(&mu_);
  if (clock_->Monotonic() < next_look_) return policy_;
  next_look_ = clock_->Monotonic() + kPolicyRefresh;
  const std::optional<std::string> version = base::FileVersion(path_);
  if (version == version_) return policy_;
  const absl::StatusOr<std::string> text = ReadPolicyText(path_);
  // One that cannot be read is read again at the next look: the cause, such as too many open files,
  // may pass without a change of the file.
  if (text.ok()) version_ = version;
  const bool is_told = std::exchange(was_unreadable_, !text.ok()) && was_unreadable_;
  absl::StatusOr<Policy> policy = text.ok() ? ParsePolicy(*text, path_) : text.status();
  if (policy.ok()) {
    policy_ = std::make_shared<const Policy>(*std::move(policy));
    base::Log(base::kInfo, "a changed policy is in force", {{"file", path_}});
  } else if (!is_told) {
    base::Log(base::kError, "the changed policy is wrong; the previous one stays in force",
              {{"file", path_}, {"why", policy.status().message()}});
  }
  return policy_;
}

absl::Status PolicyGuard::Check(const Caller& caller, absl::string_view method) {
  return Current()->Check(caller, method);
}

grpc::Status PolicyGuard::Process(const InputMetadata& metadata, grpc::AuthContext* context,
                                  OutputMetadata*, OutputMetadata*) {
  const auto path = metadata.find(":path");
  if (path == metadata.end()) {
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "the call names no method");
  }
  const std::string full = ToString(path->second);
  return ToGrpc(Check(CallerOf(*context), absl::StripPrefix(full, "/")));
}

}  // namespace muster::rpc
