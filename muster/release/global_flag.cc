// SPDX-License-Identifier: Apache-2.0
#include "muster/release/global_flag.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::release {
namespace {

// People and deployments change flags: a caller that loses so many races in a row gets an error.
constexpr int kMaxFlagRaces = 20;

}  // namespace

GlobalFlag::GlobalFlag(sync::OptimisticSyncStore* store, absl::string_view name)
    : store_(store), key_(absl::StrCat("flag/", name)) {}

absl::StatusOr<bool> GlobalFlag::Get() {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData record, store_->Get(key_));
  return record.version != sync::kAbsent;
}

// A lost race was lost to a call that created the record.
absl::Status GlobalFlag::Set() { return store_->TryWrite(key_, "set", sync::kAbsent).status(); }

absl::Status GlobalFlag::Unset() {
  for (int race = 0; race < kMaxFlagRaces; ++race) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData record, store_->Get(key_));
    if (record.version == sync::kAbsent) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const bool removed, store_->TryDelete(key_, record.version));
    if (removed) return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat("sync key '", key_, "': others set it all the time"));
}

}  // namespace muster::release
