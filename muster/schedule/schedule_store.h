// SPDX-License-Identifier: Apache-2.0

// ScheduleStore: the schedules of a mesh, in its sync store and blob store.
//
//   schedules/directory      v1::ScheduleDirectory   which schedules there are: names and ids
//   schedules/records/ID     v1::ScheduleRecord      what one is, and how far it is
//   blob schedule-ID         its content, if that is longer than kMaxRecordedContentBytes
//
//   Create:  entry in the directory ─► blob ─► record          it works from the record on
//   Update:  record ─► entry                                   others read it from the entry on
//   Remove:  record says "removed" ─► blob ─► entry ─► record  it ends with the first step
//
// A process that dies in between leaves an entry without a record that works. It is no schedule:
// the next Create of the name removes it first, and so does an initiator (kLeftoverAge). A creation
// that is slow and not dead then finds its id removed, and fails. An id is new for each creation,
// so that a schedule of the same name that was deleted shares no request ids with it. What may stay
// of a death is a record of a few bytes.
//
// Bounds are in limits.h. To change a form, add proto fields; never reuse a number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/blob/blob_store.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/v1/schedule_record.pb.h"

namespace muster::schedule {

inline constexpr absl::string_view kDirectoryKey = "schedules/directory";

// InvalidArgument, with the violated field (rpc/status.h): no schedule can be so. Does not look at
// the job, nor at what time it is.
absl::Status CheckSpec(const v1::ScheduleSpec& spec);
absl::Status CheckContent(absl::string_view content);

// The revision of the record's spec: 1, and one more with each update.
uint64_t RevisionOf(const v1::ScheduleRecord& record);

// A record, and what a later write of it compares with.
struct StoredSchedule {
  v1::ScheduleRecord record;
  uint64_t version = sync::kAbsent;
};

// Thread-safe; any number of processes share the records. Beside the statuses named below, every
// method may return the stores', and DataLoss naming an unreadable record. After an error of a
// store the outcome of a change is unknown; repeating the call is right.
class ScheduleStore {
 public:
  // Nothing is owned.
  ScheduleStore(sync::OptimisticSyncStore* records, blob::BlobStore* blobs, base::Clock* clock)
      : records_(records), blobs_(blobs), clock_(clock) {}

  // Makes the schedule of `spec`, which CheckSpec has passed, as CheckContent has `content`. One
  // that is equal already is answered as it is. AlreadyExists: another one has the name.
  // ResourceExhausted: there are kMaxSchedules, and none of them has ended.
  absl::StatusOr<v1::ScheduleRecord> Create(const v1::ScheduleSpec& spec,
                                            absl::string_view content);

  // In order of name; all as they were at one moment. Some may have no record that works.
  absl::StatusOr<std::vector<v1::ScheduleEntry>> List();

  // NotFound, reason NO_SUCH_SCHEDULE: there is no such schedule.
  absl::StatusOr<StoredSchedule> Find(absl::string_view name);
  // NotFound: the entry has no record.
  absl::StatusOr<StoredSchedule> Read(const v1::ScheduleEntry& entry);

  // Writes the record if it still has that version. False: another writer was first.
  absl::StatusOr<bool> TryWrite(const StoredSchedule& schedule);
  // Applies `change` until no other writer is in between. `change` answers false for no change.
  // NotFound as Read.
  absl::StatusOr<v1::ScheduleRecord> Change(const v1::ScheduleEntry& entry,
                                            absl::FunctionRef<bool(v1::ScheduleRecord*)> change);

  // Gives the schedule of its name another spec, which CheckSpec has passed (plan.h). One that has
  // it already, as after a call that was cut off, is answered as it is. NotFound as Find. Aborted:
  // it is not at the revision `expected`; nullopt: any. Otherwise as Update.
  absl::StatusOr<v1::ScheduleRecord> Update(const v1::ScheduleSpec& spec,
                                            std::optional<uint64_t> expected);

  // What its batches consist of. DataLoss: it is not what was stored.
  absl::StatusOr<std::string> Content(const v1::ScheduleRecord& record);

  // NotFound as Find.
  absl::Status Delete(absl::string_view name);
  // Removes this schedule, and no later one of its name. Fine where it is gone.
  absl::Status Remove(const v1::ScheduleEntry& entry);

 private:
  using Directory = std::pair<v1::ScheduleDirectory, uint64_t>;

  absl::StatusOr<Directory> ReadDirectory();
  // Applies `change` likewise to the directory.
  absl::Status ChangeDirectory(
      absl::FunctionRef<absl::StatusOr<bool>(v1::ScheduleDirectory*)> change);
  // The schedule of the name, or else a new entry for it.
  absl::StatusOr<std::variant<StoredSchedule, v1::ScheduleEntry>> Enter(const std::string& name);
  // A new entry; nullopt: others changed the directory meanwhile.
  absl::StatusOr<std::optional<v1::ScheduleEntry>> TryAdd(const std::string& name,
                                                          Directory directory);
  // From then on, no record of the id is written, and none works.
  absl::Status Fence(const v1::ScheduleEntry& entry);
  // Has the directory say how often the record was updated.
  absl::Status Announce(const v1::ScheduleRecord& record);
  // Takes it out of the directory.
  absl::Status Leave(const v1::ScheduleEntry& entry);
  // The record for a new schedule.
  v1::ScheduleRecord Draft(const v1::ScheduleSpec& spec, const v1::ScheduleEntry& entry,
                           absl::string_view content) const;
  // Removes a tenth of the schedules, of those that have ended, the oldest first.
  absl::Status MakeRoom();

  sync::OptimisticSyncStore* const records_;  // not owned
  blob::BlobStore* const blobs_;              // not owned
  base::Clock* const clock_;                  // not owned
};

}  // namespace muster::schedule
