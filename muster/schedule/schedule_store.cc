// SPDX-License-Identifier: Apache-2.0
#include "muster/schedule/schedule_store.h"

#include <algorithm>
#include <array>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "muster/base/failpoint.h"
#include "muster/base/fingerprint.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/item/labels.h"
#include "muster/rpc/status.h"
#include "muster/schedule/calendar.h"
#include "muster/schedule/limits.h"
#include "muster/schedule/plan.h"

namespace muster::schedule {
namespace {

// Of a directory that is full.
constexpr size_t kRoomMade = kMaxSchedules / 10;

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_islower(static_cast<unsigned char>(c)) ||
                  absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '_' || c == '-';
         });
}

absl::Status NoSuchSchedule(absl::string_view name) {
  return rpc::WithReason(absl::NotFoundError(absl::StrCat("no schedule ", base::Quoted(name))),
                         {.reason = "NO_SUCH_SCHEDULE",
                          .metadata = {{"schedule", base::Printable(name, kMaxNameBytes)}}});
}

std::string RecordKey(absl::string_view id) {
  return absl::StrCat("schedules/records/", absl::BytesToHexString(id));
}

std::string BlobOf(absl::string_view id) {
  return absl::StrCat("schedule-", absl::BytesToHexString(id));
}

std::string NewId() {
  std::random_device random;
  std::string id;
  while (id.size() < kIdBytes) id += static_cast<char>(random() & 0xff);
  return id;
}

absl::Status Unreadable(absl::string_view key) {
  return absl::DataLossError(absl::StrCat("sync record '", key, "' is none of a schedule"));
}

bool IsSound(const v1::ScheduleEntry& entry) {
  return IsName(entry.name()) && entry.id().size() == kIdBytes;
}

template <typename Entries>
auto Place(Entries* entries, absl::string_view name) {
  return std::lower_bound(entries->begin(), entries->end(), name,
                          [](const v1::ScheduleEntry& entry, absl::string_view wanted) {
                            return entry.name() < wanted;
                          });
}

template <typename Entries>
auto Lookup(Entries* entries, absl::string_view name) {
  const auto it = Place(entries, name);
  return it != entries->end() && it->name() == name ? &*it : nullptr;
}

absl::Status CheckWhen(const v1::ScheduleSpec& spec) {
  if (spec.has_at()) {
    if (spec.time_zone().empty()) return absl::OkStatus();
    return rpc::BadField("spec.time_zone", "is for cron: a time is the same everywhere");
  }
  if (!spec.has_cron()) return rpc::BadField("spec.cron", "must be set, or spec.at");
  const auto cron = ParseCron(spec.cron());
  if (!cron.ok()) return rpc::BadField("spec.cron", cron.status().message());
  const auto zone = FindTimeZone(spec.time_zone());
  return zone.ok() ? absl::OkStatus() : rpc::BadField("spec.time_zone", zone.status().message());
}

absl::Status CheckLabels(const v1::ScheduleSpec& spec) {
  const item::Labels labels(spec.labels().begin(), spec.labels().end());
  if (const absl::Status fault = item::CheckChosenLabels(labels); !fault.ok()) {
    return rpc::BadField("spec.labels", fault.message());
  }
  if (labels.size() > kMaxLabels) {
    return rpc::BadField("spec.labels", absl::StrCat("must be at most ", kMaxLabels));
  }
  if (labels.contains(kLabel)) {
    return rpc::BadField("spec.labels", "must not have 'schedule': that is the schedule's name");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSpec(const v1::ScheduleSpec& spec) {
  if (!IsName(spec.name())) {
    return rpc::BadField("spec.name",
                         absl::StrCat("must be 1 to ", kMaxNameBytes, " of a-z, 0-9, _ and -"));
  }
  if (spec.job().empty()) return rpc::BadField("spec.job", "must not be empty");
  if (!v1::CatchUp_IsValid(spec.catch_up())) {
    return rpc::BadField("spec.catch_up", "is none that this muster knows");
  }
  MUSTER_RETURN_IF_ERROR(CheckWhen(spec));
  return CheckLabels(spec);
}

absl::Status CheckContent(absl::string_view content) {
  if (!content.empty() && content.size() <= kMaxContentBytes) return absl::OkStatus();
  return rpc::BadField("content", absl::StrCat("must have 1 to ", kMaxContentBytes,
                                               " bytes, and has ", content.size()));
}

uint64_t RevisionOf(const v1::ScheduleRecord& record) { return record.updates() + 1; }

absl::StatusOr<v1::ScheduleRecord> ScheduleStore::Create(const v1::ScheduleSpec& spec,
                                                         absl::string_view content) {
  MUSTER_ASSIGN_OR_RETURN(auto entered, Enter(spec.name()));
  if (const auto* const known = std::get_if<StoredSchedule>(&entered); known != nullptr) {
    const v1::ScheduleRecord& record = known->record;
    const bool is_equal = google::protobuf::util::MessageDifferencer::Equals(record.spec(), spec) &&
                          record.content_bytes() == content.size() &&
                          record.content_hash() == base::Fingerprint(content).ToBytes();
    if (is_equal) return record;
    return absl::AlreadyExistsError(
        absl::StrCat("there is another schedule '", spec.name(), "': delete it first"));
  }
  const auto& entry = std::get<v1::ScheduleEntry>(entered);
  const v1::ScheduleRecord draft = Draft(spec, entry, content);
  MUSTER_FAILPOINT("schedule.after_entry");
  if (draft.content().empty()) {
    MUSTER_RETURN_IF_ERROR(blobs_->Put(BlobOf(entry.id()), content));
  }
  MUSTER_ASSIGN_OR_RETURN(
      const bool written,
      records_->TryWrite(RecordKey(entry.id()), draft.SerializeAsString(), sync::kAbsent));
  // A removal may have ended before the write: then its fence is gone, and so is the entry.
  MUSTER_ASSIGN_OR_RETURN(const Directory directory, ReadDirectory());
  const v1::ScheduleEntry* const now = Lookup(&directory.first.schedules(), spec.name());
  if (written && now != nullptr && now->id() == entry.id()) return draft;
  MUSTER_RETURN_IF_ERROR(Remove(entry));
  return absl::UnavailableError("the schedule was removed while it was made; try again");
}

v1::ScheduleRecord ScheduleStore::Draft(const v1::ScheduleSpec& spec,
                                        const v1::ScheduleEntry& entry,
                                        absl::string_view content) const {
  v1::ScheduleRecord record;
  *record.mutable_spec() = spec;
  record.set_id(entry.id());
  *record.mutable_created() = base::ToProto(clock_->Now());
  // The time of one with `at` lay ahead when it was asked for, and may have passed since, as while
  // a store was slow: then it is due, not decided.
  if (!spec.has_at()) *record.mutable_decided() = record.created();
  record.set_content_bytes(content.size());
  record.set_content_hash(base::Fingerprint(content).ToBytes());
  if (content.size() <= kMaxRecordedContentBytes) record.set_content(std::string(content));
  return record;
}

absl::StatusOr<std::variant<StoredSchedule, v1::ScheduleEntry>> ScheduleStore::Enter(
    const std::string& name) {
  bool has_made_room = false;
  for (int race = 0; race < kMaxRaces; ++race) {
    MUSTER_ASSIGN_OR_RETURN(Directory directory, ReadDirectory());
    if (const auto* const known = Lookup(&directory.first.schedules(), name); known != nullptr) {
      absl::StatusOr<StoredSchedule> stored = Read(*known);
      if (stored.ok()) return *std::move(stored);
      if (!absl::IsNotFound(stored.status())) return stored.status();
      MUSTER_RETURN_IF_ERROR(Remove(*known));
      continue;
    }
    if (directory.first.schedules_size() >= static_cast<int>(kMaxSchedules)) {
      if (has_made_room) {
        return absl::ResourceExhaustedError(
            absl::StrCat("there are ", kMaxSchedules, " schedules already; delete one"));
      }
      MUSTER_RETURN_IF_ERROR(MakeRoom());
      has_made_room = true;
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(const auto added, TryAdd(name, std::move(directory)));
    if (added.has_value()) return *added;
  }
  return absl::UnavailableError("others change schedules all the time");
}

absl::StatusOr<std::optional<v1::ScheduleEntry>> ScheduleStore::TryAdd(const std::string& name,
                                                                       Directory directory) {
  v1::ScheduleEntry entry;
  entry.set_name(name);
  entry.set_id(NewId());
  auto* const entries = directory.first.mutable_schedules();
  *entries->Add() = entry;
  std::sort(entries->begin(), entries->end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
  MUSTER_ASSIGN_OR_RETURN(
      const bool written,
      records_->TryWrite(kDirectoryKey, directory.first.SerializeAsString(), directory.second));
  if (!written) return std::nullopt;
  return entry;
}

absl::Status ScheduleStore::MakeRoom() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<v1::ScheduleEntry> entries, List());
  std::vector<std::pair<absl::Time, v1::ScheduleEntry>> ended;
  for (const v1::ScheduleEntry& entry : entries) {
    const absl::StatusOr<StoredSchedule> stored = Read(entry);
    if (!stored.ok() || !stored->record.has_ended()) continue;
    ended.emplace_back(base::FromProto(stored->record.ended()), entry);
  }
  std::sort(ended.begin(), ended.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  ended.resize(std::min(ended.size(), kRoomMade));
  for (const auto& [when, entry] : ended) MUSTER_RETURN_IF_ERROR(Remove(entry));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::ScheduleEntry>> ScheduleStore::List() {
  MUSTER_ASSIGN_OR_RETURN(const Directory directory, ReadDirectory());
  return std::vector<v1::ScheduleEntry>(directory.first.schedules().begin(),
                                        directory.first.schedules().end());
}

absl::StatusOr<StoredSchedule> ScheduleStore::Find(absl::string_view name) {
  MUSTER_ASSIGN_OR_RETURN(const Directory directory, ReadDirectory());
  const v1::ScheduleEntry* const entry = Lookup(&directory.first.schedules(), name);
  if (entry == nullptr) return NoSuchSchedule(name);
  return Read(*entry);
}

absl::StatusOr<StoredSchedule> ScheduleStore::Read(const v1::ScheduleEntry& entry) {
  const std::string key = RecordKey(entry.id());
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, records_->Get(key));
  if (stored.version == sync::kAbsent) return NoSuchSchedule(entry.name());
  StoredSchedule schedule;
  schedule.version = stored.version;
  const bool is_one =
      schedule.record.ParseFromArray(stored.data.data(), static_cast<int>(stored.data.size())) &&
      (schedule.record.removed() ||
       (schedule.record.id() == entry.id() && schedule.record.spec().name() == entry.name()));
  if (!is_one) return Unreadable(key);
  if (schedule.record.removed()) return NoSuchSchedule(entry.name());
  return schedule;
}

absl::StatusOr<bool> ScheduleStore::TryWrite(const StoredSchedule& schedule) {
  return records_->TryWrite(RecordKey(schedule.record.id()), schedule.record.SerializeAsString(),
                            schedule.version);
}

absl::StatusOr<v1::ScheduleRecord> ScheduleStore::Change(
    const v1::ScheduleEntry& entry, absl::FunctionRef<bool(v1::ScheduleRecord*)> change) {
  for (int race = 0; race < kMaxRaces; ++race) {
    MUSTER_ASSIGN_OR_RETURN(StoredSchedule stored, Read(entry));
    if (!change(&stored.record)) return std::move(stored.record);
    MUSTER_ASSIGN_OR_RETURN(const bool written, TryWrite(stored));
    if (written) return std::move(stored.record);
  }
  return absl::UnavailableError(
      absl::StrCat("others change schedule '", entry.name(), "' all the time"));
}

absl::StatusOr<v1::ScheduleRecord> ScheduleStore::Update(const v1::ScheduleSpec& spec,
                                                         std::optional<uint64_t> expected) {
  MUSTER_ASSIGN_OR_RETURN(const StoredSchedule found, Find(spec.name()));
  v1::ScheduleEntry entry;
  entry.set_name(spec.name());
  entry.set_id(found.record.id());
  absl::Status refusal;
  const auto update = [&](v1::ScheduleRecord* record) {
    const bool is_equal = google::protobuf::util::MessageDifferencer::Equals(record->spec(), spec);
    const uint64_t revision = RevisionOf(*record);
    const bool is_expected = expected.value_or(revision) == revision;
    // The update of an earlier call whose answer was lost has made the revision behind it.
    const bool is_done = is_equal && (is_expected || *expected + 1 == revision);
    refusal = is_done || is_expected
                  ? absl::OkStatus()
                  : absl::AbortedError(absl::StrCat("schedule '", spec.name(), "' is at revision ",
                                                    revision, ", not ", *expected));
    if (is_done || !refusal.ok()) return false;
    refusal = schedule::Update(spec, clock_->Now(), record);
    return refusal.ok();
  };
  MUSTER_ASSIGN_OR_RETURN(v1::ScheduleRecord record, Change(entry, update));
  MUSTER_RETURN_IF_ERROR(refusal);
  MUSTER_FAILPOINT("schedule.after_update");
  MUSTER_RETURN_IF_ERROR(Announce(record));
  return record;
}

absl::Status ScheduleStore::Announce(const v1::ScheduleRecord& record) {
  return ChangeDirectory([&](v1::ScheduleDirectory* all) -> absl::StatusOr<bool> {
    auto* const entries = all->mutable_schedules();
    const auto place = Place(entries, record.spec().name());
    if (place == entries->end() || place->id() != record.id()) return false;
    if (place->updates() >= record.updates()) return false;
    place->set_updates(record.updates());
    return true;
  });
}

absl::StatusOr<std::string> ScheduleStore::Content(const v1::ScheduleRecord& record) {
  std::string content = record.content();
  if (content.empty()) {
    MUSTER_ASSIGN_OR_RETURN(content, blobs_->Get(BlobOf(record.id())));
  }
  const bool is_whole = content.size() == record.content_bytes() &&
                        base::Fingerprint(content).ToBytes() == record.content_hash();
  if (is_whole) return content;
  return absl::DataLossError(
      absl::StrCat("the content of schedule '", record.spec().name(), "' is damaged"));
}

absl::Status ScheduleStore::Delete(absl::string_view name) {
  MUSTER_ASSIGN_OR_RETURN(const Directory directory, ReadDirectory());
  const v1::ScheduleEntry* const entry = Lookup(&directory.first.schedules(), name);
  if (entry == nullptr) return NoSuchSchedule(name);
  return Remove(*entry);
}

absl::Status ScheduleStore::Fence(const v1::ScheduleEntry& entry) {
  const std::string key = RecordKey(entry.id());
  v1::ScheduleRecord removed;
  removed.set_removed(true);
  const std::string fence = removed.SerializeAsString();
  for (int race = 0; race < kMaxRaces; ++race) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, records_->Get(key));
    if (stored.data == fence) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const bool written, records_->TryWrite(key, fence, stored.version));
    if (written) return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("others change schedule '", entry.name(), "' all the time"));
}

absl::Status ScheduleStore::Remove(const v1::ScheduleEntry& entry) {
  MUSTER_RETURN_IF_ERROR(Fence(entry));
  MUSTER_FAILPOINT("schedule.after_fence");
  MUSTER_RETURN_IF_ERROR(blobs_->Delete(BlobOf(entry.id())));
  MUSTER_RETURN_IF_ERROR(Leave(entry));
  const std::string key = RecordKey(entry.id());
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData fence, records_->Get(key));
  if (fence.version == sync::kAbsent) return absl::OkStatus();
  return records_->TryDelete(key, fence.version).status();
}

absl::Status ScheduleStore::Leave(const v1::ScheduleEntry& entry) {
  return ChangeDirectory([&](v1::ScheduleDirectory* all) -> absl::StatusOr<bool> {
    auto* const entries = all->mutable_schedules();
    const auto place = Place(entries, entry.name());
    if (place == entries->end() || place->id() != entry.id()) return false;
    entries->erase(place);
    return true;
  });
}

absl::StatusOr<ScheduleStore::Directory> ScheduleStore::ReadDirectory() {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, records_->Get(kDirectoryKey));
  v1::ScheduleDirectory all;
  const bool is_one =
      all.ParseFromArray(stored.data.data(), static_cast<int>(stored.data.size())) &&
      std::all_of(all.schedules().begin(), all.schedules().end(), IsSound) &&
      std::is_sorted(all.schedules().begin(), all.schedules().end(),
                     [](const auto& a, const auto& b) { return a.name() < b.name(); });
  if (!is_one) return Unreadable(kDirectoryKey);
  return Directory(std::move(all), stored.version);
}

absl::Status ScheduleStore::ChangeDirectory(
    absl::FunctionRef<absl::StatusOr<bool>(v1::ScheduleDirectory*)> change) {
  for (int race = 0; race < kMaxRaces; ++race) {
    MUSTER_ASSIGN_OR_RETURN(Directory directory, ReadDirectory());
    MUSTER_ASSIGN_OR_RETURN(const bool changed, change(&directory.first));
    if (!changed) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(
        const bool written,
        records_->TryWrite(kDirectoryKey, directory.first.SerializeAsString(), directory.second));
    if (written) return absl::OkStatus();
  }
  return absl::UnavailableError("others change schedules all the time");
}

}  // namespace muster::schedule
