// SPDX-License-Identifier: Apache-2.0

// Releases: the durable side of releases. A release has a name, and epochs that are
// armed and released in turn. Workers park until the epoch that is armed when they come is
// released:
//
//            Release                 Arm                   Release
//   epoch 1 ─────────► released 1 ─────────► epoch 2 armed ─────────► released 2 …
//   workers park       workers go on         workers park
//
// All releases of a mesh are in one record of the sync store, which changes by compare-and-set:
//
//   releases     v1::ReleaseRecords     in order of name
//
// What bounds it: kMaxReleases names. A name that is not used any more stays until its place is
// wanted: then the one that was released longest ago goes, if that is kForgetAfter or longer. A
// worker that comes after that parks anew. To change the form, add proto fields; an older muster
// keeps those that it does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/bus/trigger_bus.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/v1/release_record.pb.h"

namespace muster::release {

// A name goes into subjects and tables.
inline constexpr size_t kMaxNameBytes = 64;
// With at most 130 bytes for each they fit into one record, and every waiting process reads it.
inline constexpr size_t kMaxReleases = 256;
// No worker starts so late, and expects to be let go by a release of then.
inline constexpr absl::Duration kForgetAfter = absl::Hours(24 * 30);

// InvalidArgument unless `name` is 1 to kMaxNameBytes of [A-Za-z0-9._-].
absl::Status ValidateName(absl::string_view name);

struct ReleaseState {
  std::string name;
  int64_t armed_epoch = 1;
  int64_t released_epoch = 0;                  // 0: none was released yet
  absl::Time armed = absl::InfinitePast();     // when it was armed last; InfinitePast: never
  absl::Time released = absl::InfinitePast();  // when it was released last, likewise

  // Whether a worker that comes now goes on without parking.
  bool is_open() const { return released_epoch >= armed_epoch; }
  // Whether a worker goes that has been waiting for `epoch`. A store that has lost the record, or
  // has an older copy, counts from lower epochs again: that any epoch is released now is
  // enough.
  bool LetsGo(int64_t epoch) const { return released_epoch >= epoch || is_open(); }
};

// The state of `name` in the record `data`, which may be empty. DataLoss: it is no such record.
absl::StatusOr<ReleaseState> StateIn(absl::string_view data, absl::string_view name);

// The key of the record.
inline constexpr absl::string_view kReleasesKey = "releases";

// Thread-safe; any number of processes share the record. Errors beside those named are the store's;
// after one the outcome of a change is unknown, and repeating the call with the same epoch is
// right.
class Releases {
 public:
  // `store`, `bus` and `clock` are not owned. `instance` is the sender of events.
  Releases(sync::OptimisticSyncStore* store, bus::TriggerBus* bus, std::string instance,
           base::Clock* clock);

  // A name that was never used has epoch 1 armed. InvalidArgument: no name of a release.
  absl::StatusOr<ReleaseState> Get(absl::string_view name);

  // In order of name.
  absl::StatusOr<std::vector<ReleaseState>> List();

  // Releases the armed epoch, then multicasts it. Does nothing but multicast again if it is
  // released already. `epoch`: this one and no later one; FailedPrecondition if it is not armed
  // yet. ResourceExhausted: the name is new, and kMaxReleases are in use. A multicast that fails is
  // logged: those who wait read the record sooner or later.
  absl::StatusOr<ReleaseState> Release(absl::string_view name,
                                       std::optional<int64_t> epoch = std::nullopt);

  // Arms the next epoch, once the armed one is released; until then it does nothing. `after`: only
  // if that is the epoch that was released last; does nothing if a later one is armed.
  // FailedPrecondition: it is not released yet. ResourceExhausted as Release.
  absl::StatusOr<ReleaseState> Arm(absl::string_view name,
                                   std::optional<int64_t> after = std::nullopt);

 private:
  // Answers whether it changed the record.
  using Edit = absl::FunctionRef<absl::StatusOr<bool>(v1::ReleaseRecord*)>;

  absl::StatusOr<ReleaseState> Change(absl::string_view name, Edit edit);
  // The record of `name`, made if need be.
  absl::StatusOr<v1::ReleaseRecord*> Find(v1::ReleaseRecords* all, absl::string_view name);

  sync::OptimisticSyncStore* const store_;  // not owned
  bus::TriggerBus* const bus_;              // not owned
  const std::string instance_;
  base::Clock* const clock_;  // not owned
};

}  // namespace muster::release
