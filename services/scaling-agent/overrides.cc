// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/overrides.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "nlohmann/json.hpp"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {
namespace {

absl::Status NoOverrides() {
  return absl::DataLossError(absl::StrCat(kOverridesKey, " is no record of overrides"));
}

}  // namespace

std::string Encode(const std::vector<Override>& overrides) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Override& one : overrides) {
    list.push_back({{"target", one.target},
                    {"replicas", one.replicas},
                    {"until_ns", absl::ToUnixNanos(one.until)},
                    {"by", one.by}});
  }
  const nlohmann::ordered_json json = {{"version", kOverridesVersion}, {"overrides", list}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

absl::StatusOr<std::vector<Override>> DecodeOverrides(absl::string_view text) {
  const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return NoOverrides();
  std::vector<Override> overrides;
  try {
    if (json.at("version").get<int>() > kOverridesVersion) {
      return absl::FailedPreconditionError(
          absl::StrCat(kOverridesKey, " was written by a later muster"));
    }
    for (const auto& one : json.at("overrides")) {
      overrides.push_back({one.at("target").get<std::string>(), one.at("replicas").get<int>(),
                           absl::FromUnixNanos(one.at("until_ns").get<int64_t>()),
                           one.at("by").get<std::string>()});
    }
  } catch (const nlohmann::json::exception&) {
    return NoOverrides();
  }
  return overrides;
}

absl::StatusOr<Overrides::ByTarget> Overrides::Read(uint64_t* version) const {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData read, store_->Get(kOverridesKey));
  *version = read.version;
  ByTarget by_target;
  if (read.version == sync::kAbsent) return by_target;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Override> overrides, DecodeOverrides(read.data));
  for (const Override& one : overrides) {
    if (one.until > clock_->Now()) by_target[one.target] = one;
  }
  return by_target;
}

void Overrides::Know(ByTarget overrides) {
  base::MutexLock lock(&mu_);
  known_ = std::move(overrides);
}

absl::Status Overrides::Refresh() {
  base::MutexLock changing(&changing_);
  uint64_t version = sync::kAbsent;
  MUSTER_ASSIGN_OR_RETURN(ByTarget read, Read(&version));
  Know(std::move(read));
  return absl::OkStatus();
}

void Overrides::Forget() {
  base::MutexLock lock(&mu_);
  known_.reset();
}

bool Overrides::is_known() const {
  base::MutexLock lock(&mu_);
  return known_.has_value();
}

std::optional<Override> Overrides::Of(const std::string& target) const {
  base::MutexLock lock(&mu_);
  if (!known_.has_value()) return std::nullopt;
  const auto found = known_->find(target);
  if (found == known_->end() || found->second.until <= clock_->Now()) return std::nullopt;
  return found->second;
}

absl::Status Overrides::Set(const Override& override) {
  return Change([&override](ByTarget* all) { (*all)[override.target] = override; });
}

absl::Status Overrides::Clear(const std::string& target) {
  return Change([&target](ByTarget* all) { all->erase(target); });
}

absl::Status Overrides::Change(const std::function<void(ByTarget*)>& change) {
  base::MutexLock changing(&changing_);
  for (int tried = 0; tried < kMaxOverrideTries; ++tried) {
    uint64_t version = sync::kAbsent;
    MUSTER_ASSIGN_OR_RETURN(ByTarget changed, Read(&version));
    const ByTarget before = changed;
    change(&changed);
    if (changed == before) {
      Know(std::move(changed));
      return absl::OkStatus();
    }
    std::vector<Override> list;
    for (const auto& [target, one] : changed) list.push_back(one);
    MUSTER_ASSIGN_OR_RETURN(const bool written,
                            store_->TryWrite(kOverridesKey, Encode(list), version));
    if (!written) continue;
    Know(std::move(changed));
    return absl::OkStatus();
  }
  return absl::AbortedError("others kept changing overrides at the same time");
}

}  // namespace muster::scaling_agent
