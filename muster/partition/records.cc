// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/records.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/v1/partition_record.pb.h"

namespace muster::partition {
namespace {

// In the place of PartitionGroup.partitions. A muster before pages takes it for a number of
// partitions that makes no sense, and does not join.
constexpr int kPages = -1;

// Gives each name its number, from 1 on; an empty one has 0.
class NameTable {
 public:
  explicit NameTable(v1::PartitionOwners* page) : page_(page) {}

  int32_t NumberOf(const std::string& name) {
    if (name.empty()) return 0;
    const auto [it, fresh] = numbers_.try_emplace(name, page_->names_size() + 1);
    if (fresh) page_->add_names(name);
    return it->second;
  }

 private:
  v1::PartitionOwners* const page_;  // not owned
  std::map<std::string, int32_t> numbers_;
};

std::string EncodeOwners(const std::vector<Ownership>& owners) {
  v1::PartitionOwners page;
  NameTable names(&page);
  for (const Ownership& ownership : owners) {
    v1::PartitionOwnerRow* const row = page.add_rows();
    row->set_owner(names.NumberOf(ownership.owner));
    row->set_epoch(ownership.epoch);
    row->set_renewal(ownership.renewal);
    row->set_wanted_by(names.NumberOf(ownership.wanted_by));
    row->set_granted(ownership.granted);
    row->set_pinned_to(names.NumberOf(ownership.pinned_to));
    row->set_claimed_at_unix_millis(ownership.claimed_at_millis);
  }
  return page.SerializeAsString();
}

std::string EncodeMembers(const RecordValue& value) {
  v1::PartitionGroup proto;
  for (const std::string& member : value.members) proto.add_members(member);
  proto.set_partitions(kPages);
  proto.set_page_partitions(value.partitions);
  return proto.SerializeAsString();
}

std::string EncodeBeat(int64_t beat, uint64_t instance) {
  v1::PartitionPresence proto;
  proto.set_beat(beat);
  proto.set_instance(instance);
  return proto.SerializeAsString();
}

template <typename Proto>
bool Parse(absl::string_view data, Proto* proto) {
  return proto->ParseFromArray(data.data(), static_cast<int>(data.size()));
}

// An owner has an epoch, and only an owner grants, to the member that asked.
bool MakesSense(const Ownership& ownership) {
  if (ownership.epoch < 0 || ownership.renewal < 0) return false;
  if (!ownership.owner.empty() && ownership.epoch == 0) return false;
  return !ownership.granted || (!ownership.owner.empty() && !ownership.wanted_by.empty());
}

// False: there is no such name.
bool NameOf(const v1::PartitionOwners& page, int32_t number, std::string* name) {
  if (number < 0 || number > page.names_size()) return false;
  *name = number == 0 ? std::string() : page.names(number - 1);
  return true;
}

bool ParseOwners(absl::string_view data, std::vector<Ownership>* owners) {
  v1::PartitionOwners page;
  if (!Parse(data, &page) || page.rows_size() > kPageRows) return false;
  owners->reserve(static_cast<size_t>(page.rows_size()));
  for (const v1::PartitionOwnerRow& row : page.rows()) {
    Ownership ownership{.epoch = row.epoch(),
                        .renewal = row.renewal(),
                        .granted = row.granted(),
                        .claimed_at_millis = row.claimed_at_unix_millis()};
    const bool sound = NameOf(page, row.owner(), &ownership.owner) &&
                       NameOf(page, row.wanted_by(), &ownership.wanted_by) &&
                       NameOf(page, row.pinned_to(), &ownership.pinned_to);
    if (!sound || !MakesSense(ownership)) return false;
    owners->push_back(std::move(ownership));
  }
  return true;
}

bool ParseMembers(absl::string_view data, RecordValue* value, int* layout) {
  v1::PartitionGroup proto;
  if (!Parse(data, &proto)) return false;
  value->members.assign(proto.members().begin(), proto.members().end());
  *layout = proto.partitions();
  value->partitions = *layout == kPages ? proto.page_partitions() : *layout;
  return std::is_sorted(value->members.begin(), value->members.end()) && value->partitions >= 0 &&
         value->partitions <= kMaxPartitions;
}

bool ParseBeat(absl::string_view data, int64_t* beat) {
  v1::PartitionPresence proto;
  if (!Parse(data, &proto)) return false;
  *beat = proto.beat();
  return true;
}

// Of a presence that is sound; 0: an earlier muster wrote it.
uint64_t InstanceIn(absl::string_view data) {
  v1::PartitionPresence proto;
  return Parse(data, &proto) ? proto.instance() : 0;
}

}  // namespace

const Ownership& RowOf(const std::vector<Ownership>& owners, int row) {
  static const Ownership* const kEmpty = new Ownership;
  return static_cast<size_t>(row) < owners.size() ? owners[static_cast<size_t>(row)] : *kEmpty;
}

void SetRow(std::vector<Ownership>* owners, int row, Ownership ownership) {
  const auto at = static_cast<size_t>(row);
  if (owners->size() <= at) owners->resize(at + 1);
  (*owners)[at] = std::move(ownership);
}

int PagesOf(int partitions, int page_rows) { return (partitions + page_rows - 1) / page_rows; }

std::string EarlierOwnerKey(absl::string_view group, int partition) {
  return absl::StrCat("partition/", group, "/owner/", partition);
}

std::string KeyOf(absl::string_view group, const RecordName& name) {
  switch (name.kind) {
    case RecordName::Kind::kOwners:
      return absl::StrCat("partition/", group, "/owners/", name.page);
    case RecordName::Kind::kMembers:
      return absl::StrCat("partition/", group, "/members");
    case RecordName::Kind::kPresence:
      break;
  }
  return absl::StrCat("partition/", group, "/member/", name.member);
}

std::string CheckpointKey(absl::string_view group, int partition) {
  return absl::StrCat("partition/", group, "/checkpoint/", partition);
}

std::string EncodeRecord(RecordName::Kind kind, const RecordValue& value, uint64_t instance) {
  switch (kind) {
    case RecordName::Kind::kOwners:
      return EncodeOwners(value.owners);
    case RecordName::Kind::kMembers:
      return EncodeMembers(value);
    case RecordName::Kind::kPresence:
      break;
  }
  return EncodeBeat(value.beat, instance);
}

absl::StatusOr<RecordValue> DecodeRecord(RecordName::Kind kind, absl::string_view data) {
  RecordValue value;
  bool sound = false;
  int layout = kPages;
  switch (kind) {
    case RecordName::Kind::kOwners:
      sound = ParseOwners(data, &value.owners);
      break;
    case RecordName::Kind::kMembers:
      sound = ParseMembers(data, &value, &layout);
      break;
    case RecordName::Kind::kPresence:
      sound = ParseBeat(data, &value.beat);
      break;
  }
  if (!sound) return absl::DataLossError("the record makes no sense");
  if (layout != kPages) {
    return absl::FailedPreconditionError(
        "an earlier muster, with a record for each partition, made this group: stop its members, "
        "forget the group (muster partition forget), and start them again");
  }
  return value;
}

absl::StatusOr<RecordValue> DecodeEarlierMembers(absl::string_view data) {
  RecordValue value;
  int layout = kPages;
  if (!ParseMembers(data, &value, &layout)) return absl::DataLossError("the record makes no sense");
  return value;
}

SyncRecords::SyncRecords(sync::OptimisticSyncStore* store, absl::string_view group,
                         uint64_t instance)
    : store_(store), group_(group), instance_(instance) {}

RecordReply SyncRecords::CarryOut(const RecordRequest& request) {
  const std::string key = KeyOf(group_, request.name);
  if (request.verb == RecordRequest::Verb::kRead) return Read(request, key);
  absl::StatusOr<bool> done =
      request.verb == RecordRequest::Verb::kWrite
          ? store_->TryWrite(key, EncodeRecord(request.name.kind, request.value, instance_),
                             request.version)
          : store_->TryDelete(key, request.version);
  return {.status = base::Annotate(done.status(), key), .done = done.ok() && *done};
}

RecordReply SyncRecords::Read(const RecordRequest& request, const std::string& key) {
  absl::StatusOr<sync::VersionedData> stored = store_->Get(key);
  if (!stored.ok()) return {.status = base::Annotate(stored.status(), key)};
  if (stored->version == sync::kAbsent) return {};
  absl::StatusOr<RecordValue> value = DecodeRecord(request.name.kind, stored->data);
  if (!value.ok()) return {.status = base::Annotate(value.status(), key)};
  RecordReply reply{.value = *std::move(value), .version = stored->version};
  if (request.name.kind == RecordName::Kind::kPresence) reply.instance = InstanceIn(stored->data);
  return reply;
}

}  // namespace muster::partition
