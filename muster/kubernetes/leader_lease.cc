#include "muster/kubernetes/leader_lease.h"

#include <algorithm>
#include <utility>

#include "muster/base/status_macros.h"
#include "muster/kubernetes/json_fields.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes {
namespace {

using nlohmann::json;

constexpr int64_t kMaxLeaseSeconds = 3600;

int64_t SecondsOf(absl::Duration duration) {
  return std::clamp<int64_t>(absl::ToInt64Seconds(absl::Ceil(duration, absl::Seconds(1))), 1,
                             kMaxLeaseSeconds);
}

Address LeaseAddress(const LeaseName& name) { return {kLeases, name.name_space, name.name, ""}; }

// `version` empty: it does not exist yet.
json LeaseObject(const LeaseName& name, const json& spec, const std::string& version) {
  json metadata = {{"name", name.name}, {"namespace", name.name_space}};
  if (!version.empty()) metadata["resourceVersion"] = version;
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", std::move(metadata)},
          {"spec", spec}};
}

json SpecOf(const LeaderLeaseOptions& options, int64_t token, absl::Time now) {
  return {{"holderIdentity", options.identity},
          {"leaseDurationSeconds", SecondsOf(options.duration)},
          {"leaseTransitions", token},
          {"acquireTime", MicroTime(now)},
          {"renewTime", MicroTime(now)}};
}

}  // namespace

absl::StatusOr<LeaseRecord> ReadLease(Client* client, const LeaseName& name) {
  MUSTER_ASSIGN_OR_RETURN(const json lease, client->Get(LeaseAddress(name)));
  const int64_t seconds = IntegerAt(lease, {"spec", "leaseDurationSeconds"}, 1);
  return LeaseRecord{
      .holder = TextAt(lease, {"spec", "holderIdentity"}),
      .transitions = IntegerAt(lease, {"spec", "leaseTransitions"}),
      .duration = absl::Seconds(std::clamp<int64_t>(seconds, 1, kMaxLeaseSeconds)),
      .renewed = TextAt(lease, {"spec", "renewTime"}),
      .version = TextAt(lease, {"metadata", "resourceVersion"}),
  };
}

LeaderLease::LeaderLease(Client* client, LeaderLeaseOptions options, base::Clock* clock)
    : client_(client), options_(std::move(options)), clock_(clock) {}

absl::StatusOr<bool> LeaderLease::Hold() {
  base::MutexLock step(&steps_);
  // Our time is counted from before the request: others count from after it.
  const absl::Duration began = clock_->Monotonic();
  const absl::StatusOr<LeaseRecord> record = ReadLease(client_, options_.lease);
  if (absl::IsNotFound(record.status())) return CreateLocked(began);
  if (!record.ok()) return record.status();
  highest_seen_ = std::max(highest_seen_, record->transitions);
  if (IsOurs(*record)) return WriteLocked(*record, record->transitions, began);
  if (IsInForceLocked(*record)) return Lost();
  return WriteLocked(*record, highest_seen_ + 1, began);
}

bool LeaderLease::IsOurs(const LeaseRecord& record) const {
  base::MutexLock lock(&mu_);
  // A process of the same name that came before us had another token.
  return token_ != 0 && record.holder == options_.identity && record.transitions == token_;
}

bool LeaderLease::IsInForceLocked(const LeaseRecord& record) {
  if (record.holder.empty()) return false;
  const absl::Duration now = clock_->Monotonic();
  if (record.version != seen_version_) {
    seen_version_ = record.version;
    seen_since_ = now;
  }
  return now < seen_since_ + record.duration;
}

absl::StatusOr<bool> LeaderLease::CreateLocked(absl::Duration began) {
  // Somebody may have deleted it. Who has seen it goes on from there, for a token must not come
  // back.
  const int64_t token = highest_seen_ + 1;
  const json spec = SpecOf(options_, token, clock_->Now());
  Address address = LeaseAddress(options_.lease);
  address.name.clear();
  const absl::Status created =
      client_->Create(address, LeaseObject(options_.lease, spec, "")).status();
  if (absl::IsAlreadyExists(created)) return Lost();
  MUSTER_RETURN_IF_ERROR(created);
  HeldLocked(token, began);
  return true;
}

absl::StatusOr<bool> LeaderLease::WriteLocked(const LeaseRecord& read, int64_t token,
                                              absl::Duration began) {
  const json spec = SpecOf(options_, token, clock_->Now());
  const absl::Status written =
      client_->Update(LeaseAddress(options_.lease), LeaseObject(options_.lease, spec, read.version))
          .status();
  // Somebody was first, or it was us and the answer was lost: the next step sees which.
  if (absl::IsAborted(written)) return Token().has_value();
  MUSTER_RETURN_IF_ERROR(written);
  HeldLocked(token, began);
  return true;
}

void LeaderLease::HeldLocked(int64_t token, absl::Duration began) {
  highest_seen_ = std::max(highest_seen_, token);
  base::MutexLock lock(&mu_);
  token_ = token;
  until_ = began + absl::Seconds(SecondsOf(options_.duration));
}

bool LeaderLease::Lost() {
  base::MutexLock lock(&mu_);
  token_ = 0;
  return false;
}

std::optional<int64_t> LeaderLease::Token() const {
  base::MutexLock lock(&mu_);
  if (token_ == 0 || clock_->Monotonic() >= until_) return std::nullopt;
  return token_;
}

absl::Status LeaderLease::Release() {
  base::MutexLock step(&steps_);
  const absl::StatusOr<LeaseRecord> record = ReadLease(client_, options_.lease);
  const bool is_ours = record.ok() && IsOurs(*record);
  Lost();
  if (absl::IsNotFound(record.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(record.status());
  if (!is_ours) return absl::OkStatus();
  json spec = SpecOf(options_, record->transitions, clock_->Now());
  spec["holderIdentity"] = "";
  const absl::Status freed =
      client_
          ->Update(LeaseAddress(options_.lease), LeaseObject(options_.lease, spec, record->version))
          .status();
  return absl::IsAborted(freed) ? absl::OkStatus() : freed;
}

}  // namespace muster::kubernetes
