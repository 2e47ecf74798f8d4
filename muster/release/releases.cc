// SPDX-License-Identifier: Apache-2.0
#include "muster/release/releases.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/names.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"

namespace muster::release {
namespace {

// People change releases: a caller that loses so many races in a row gets an error.
constexpr int kMaxReleaseRaces = 20;

absl::Time TimeOf(bool has, const google::protobuf::Timestamp& time) {
  return has ? base::FromProto(time) : absl::InfinitePast();
}

ReleaseState StateOf(const v1::ReleaseRecord& record) {
  return {.name = record.name(),
          .armed_epoch = record.armed_epoch(),
          .released_epoch = record.released_epoch(),
          .armed = TimeOf(record.has_armed(), record.armed()),
          .released = TimeOf(record.has_released(), record.released())};
}

bool IsSound(const v1::ReleaseRecord& record) {
  return ValidateName(record.name()).ok() && record.released_epoch() >= 0 &&
         record.armed_epoch() >= 1 && record.released_epoch() <= record.armed_epoch() &&
         record.armed_epoch() < std::numeric_limits<int64_t>::max();
}

absl::StatusOr<v1::ReleaseRecords> Parse(absl::string_view data) {
  v1::ReleaseRecords all;
  const bool is_one = data.size() <= sync::kMaxDataBytes &&
                      all.ParseFromArray(data.data(), static_cast<int>(data.size())) &&
                      std::all_of(all.releases().begin(), all.releases().end(), IsSound);
  if (is_one) return all;
  return absl::DataLossError(absl::StrCat("the record '", kReleasesKey,
                                          "' of the sync store is no "
                                          "record of releases"));
}

const v1::ReleaseRecord* Lookup(const v1::ReleaseRecords& all, absl::string_view name) {
  const auto found = std::find_if(all.releases().begin(), all.releases().end(),
                                  [name](const auto& one) { return one.name() == name; });
  return found == all.releases().end() ? nullptr : &*found;
}

// Makes room by forgetting the release that no worker can be waiting for. False: there is none.
bool ForgetOldest(v1::ReleaseRecords* all, absl::Time now) {
  auto& releases = *all->mutable_releases();
  auto oldest = releases.end();
  for (auto it = releases.begin(); it != releases.end(); ++it) {
    const ReleaseState state = StateOf(*it);
    if (!state.is_open() || now - state.released < kForgetAfter) continue;
    if (oldest == releases.end() || state.released < StateOf(*oldest).released) oldest = it;
  }
  if (oldest == releases.end()) return false;
  base::Log(base::kInfo, "a release is forgotten, to make room for another one",
            {{"release", oldest->name()}});
  releases.erase(oldest);
  return true;
}

}  // namespace

absl::Status ValidateName(absl::string_view name) {
  const bool is_one = !name.empty() && name.size() <= kMaxNameBytes &&
                      std::all_of(name.begin(), name.end(), base::IsNameCharacter);
  if (is_one) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", absl::CHexEscape(name.substr(0, kMaxNameBytes)),
      "' is no name of a release: that has 1 to ", kMaxNameBytes, " letters, digits and ._-"));
}

absl::StatusOr<ReleaseState> StateIn(absl::string_view data, absl::string_view name) {
  MUSTER_ASSIGN_OR_RETURN(const v1::ReleaseRecords all, Parse(data));
  const v1::ReleaseRecord* const record = Lookup(all, name);
  return record == nullptr ? ReleaseState{.name = std::string(name)} : StateOf(*record);
}

Releases::Releases(sync::OptimisticSyncStore* store, bus::TriggerBus* bus, std::string instance,
                   base::Clock* clock)
    : store_(store), bus_(bus), instance_(std::move(instance)), clock_(clock) {}

absl::StatusOr<ReleaseState> Releases::Get(absl::string_view name) {
  MUSTER_RETURN_IF_ERROR(ValidateName(name));
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, store_->Get(kReleasesKey));
  return StateIn(stored.data, name);
}

absl::StatusOr<std::vector<ReleaseState>> Releases::List() {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, store_->Get(kReleasesKey));
  MUSTER_ASSIGN_OR_RETURN(const v1::ReleaseRecords all, Parse(stored.data));
  std::vector<ReleaseState> states;
  for (const v1::ReleaseRecord& record : all.releases()) states.push_back(StateOf(record));
  return states;
}

absl::StatusOr<ReleaseState> Releases::Release(absl::string_view name,
                                               std::optional<int64_t> epoch) {
  const auto release = [&](v1::ReleaseRecord* record) -> absl::StatusOr<bool> {
    // The first look decides which epoch is meant: a lost race must not lead to a later one.
    if (!epoch.has_value()) epoch = record->armed_epoch();
    if (*epoch > record->armed_epoch()) {
      return absl::FailedPreconditionError(absl::StrCat("release '", name, "': epoch ", *epoch,
                                                        " is not armed, but epoch ",
                                                        record->armed_epoch()));
    }
    if (record->released_epoch() >= *epoch) return false;
    record->set_released_epoch(record->armed_epoch());
    *record->mutable_released() = base::ToProto(clock_->Now());
    return true;
  };
  MUSTER_ASSIGN_OR_RETURN(ReleaseState state, Change(name, release));
  // After the write: a processor that gets the event finds the record changed.
  base::LogUnlessOk(
      base::kWarning, "those who wait for a release learn of it only by looking",
      bus_->Publish({instance_, bus::ReleasedEvent{state.name, state.released_epoch}}),
      {{"release", name}});
  return state;
}

absl::StatusOr<ReleaseState> Releases::Arm(absl::string_view name, std::optional<int64_t> after) {
  return Change(name, [&](v1::ReleaseRecord* record) -> absl::StatusOr<bool> {
    if (after.has_value() && record->released_epoch() < *after) {
      return absl::FailedPreconditionError(absl::StrCat("release '", name, "': epoch ", *after,
                                                        " is not released, but epoch ",
                                                        record->released_epoch()));
    }
    const bool is_armed = record->armed_epoch() > record->released_epoch();
    if (is_armed || record->armed_epoch() > after.value_or(record->armed_epoch())) return false;
    record->set_armed_epoch(record->armed_epoch() + 1);
    *record->mutable_armed() = base::ToProto(clock_->Now());
    return true;
  });
}

absl::StatusOr<ReleaseState> Releases::Change(absl::string_view name, Edit edit) {
  MUSTER_RETURN_IF_ERROR(ValidateName(name));
  for (int race = 0; race < kMaxReleaseRaces; ++race) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, store_->Get(kReleasesKey));
    MUSTER_ASSIGN_OR_RETURN(v1::ReleaseRecords all, Parse(stored.data));
    MUSTER_ASSIGN_OR_RETURN(v1::ReleaseRecord* const record, Find(&all, name));
    MUSTER_ASSIGN_OR_RETURN(const bool changed, edit(record));
    if (!changed) return StateOf(*record);
    MUSTER_ASSIGN_OR_RETURN(
        const bool written,
        store_->TryWrite(kReleasesKey, all.SerializeAsString(), stored.version));
    if (written) return StateOf(*record);
  }
  return absl::AbortedError(
      absl::StrCat("release '", name, "': others change releases all the time"));
}

absl::StatusOr<v1::ReleaseRecord*> Releases::Find(v1::ReleaseRecords* all, absl::string_view name) {
  auto& releases = *all->mutable_releases();
  const auto place = std::lower_bound(
      releases.begin(), releases.end(), name,
      [](const v1::ReleaseRecord& one, absl::string_view other) { return one.name() < other; });
  if (place != releases.end() && place->name() == name) return &*place;
  if (all->releases_size() >= static_cast<int>(kMaxReleases) && !ForgetOldest(all, clock_->Now())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", kMaxReleases, " releases, and none was released ",
                     absl::ToInt64Hours(kForgetAfter) / 24,
                     " days ago and not armed again: use one of their names"));
  }
  v1::ReleaseRecord* const record = all->add_releases();
  record->set_name(std::string(name));
  record->set_armed_epoch(1);
  std::sort(releases.begin(), releases.end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
  return &*std::find_if(releases.begin(), releases.end(),
                        [name](const auto& one) { return one.name() == name; });
}

}  // namespace muster::release
