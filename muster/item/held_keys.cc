// SPDX-License-Identifier: Apache-2.0
#include "muster/item/held_keys.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/v1/held_key_record.pb.h"

namespace muster::item {
namespace {

// The owner and operators change a record, so a race is rarely lost twice.
constexpr int kMaxTries = 25;

std::string RecordOf(const queue::QueueId& partition) {
  return absl::StrCat("held/", partition.account, "/", partition.name);
}

HeldKey FromRecord(const v1::HeldKeyEntry& entry) {
  HeldKey held{entry.key(), entry.batch(), entry.item(), base::FromProto(entry.since())};
  if (entry.has_inserted()) {
    held.message = {"", entry.position(), base::FromProto(entry.inserted())};
  }
  return held;
}

void ToRecord(const HeldKey& held, v1::HeldKeyEntry* entry) {
  entry->set_key(held.key);
  entry->set_batch(held.batch);
  entry->set_item(held.item);
  *entry->mutable_since() = base::ToProto(held.since);
  entry->clear_position();
  entry->clear_inserted();
  if (!held.message.has_value()) return;
  entry->set_position(held.message->position);
  *entry->mutable_inserted() = base::ToProto(held.message->insertion_time);
}

absl::StatusOr<v1::HeldKeyRecord> Parse(const std::string& name, const std::string& data) {
  v1::HeldKeyRecord record;
  if (record.ParseFromString(data)) return record;
  return absl::DataLossError(absl::StrCat("the record ", name, " is damaged"));
}

bool IsSame(const v1::HeldKeyEntry& entry, const HeldKey& held) {
  return entry.key() == held.key && entry.batch() == held.batch && entry.item() == held.item;
}

}  // namespace

absl::StatusOr<std::vector<HeldKey>> HeldKeyStore::Read(const queue::QueueId& partition) {
  const std::string name = RecordOf(partition);
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, store_->Get(name));
  MUSTER_ASSIGN_OR_RETURN(const v1::HeldKeyRecord record, Parse(name, stored.data));
  std::vector<HeldKey> keys;
  for (const v1::HeldKeyEntry& entry : record.keys()) keys.push_back(FromRecord(entry));
  return keys;
}

absl::Status HeldKeyStore::Update(const queue::QueueId& partition, const Change& change) {
  const std::string name = RecordOf(partition);
  for (int tries = 0; tries < kMaxTries; ++tries) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, store_->Get(name));
    MUSTER_ASSIGN_OR_RETURN(v1::HeldKeyRecord record, Parse(name, stored.data));
    MUSTER_ASSIGN_OR_RETURN(const bool changed, change(&record));
    if (!changed) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const bool written,
                            store_->TryWrite(name, record.SerializeAsString(), stored.version));
    if (written) return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("the record ", name, " changes all the time"));
}

absl::Status HeldKeyStore::Forget(const queue::QueueId& partition) {
  const std::string name = RecordOf(partition);
  for (int tries = 0; tries < kMaxTries; ++tries) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, store_->Get(name));
    if (stored.version == sync::kAbsent) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const bool deleted, store_->TryDelete(name, stored.version));
    if (deleted) return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("the record ", name, " changes all the time"));
}

absl::Status HeldKeyStore::Hold(const queue::QueueId& partition, const HeldKey& held) {
  return Update(partition, [&](v1::HeldKeyRecord* record) -> absl::StatusOr<bool> {
    auto* const keys = record->mutable_keys();
    const auto found = std::find_if(keys->begin(), keys->end(),
                                    [&](const auto& entry) { return entry.key() == held.key; });
    if (found != keys->end()) {
      // A copy of the item that is given up has another message.
      HeldKey now = held;
      if (IsSame(*found, held)) now.since = base::FromProto(found->since());
      const std::string before = found->SerializeAsString();
      ToRecord(now, &*found);
      return found->SerializeAsString() != before;
    }
    ToRecord(held, record->add_keys());
    if (keys->size() <= kMaxHeldKeys && record->ByteSizeLong() <= sync::kMaxDataBytes) return true;
    return absl::ResourceExhaustedError(
        absl::StrCat("queue ", partition.ToString(), " holds ", keys->size() - 1,
                     " keys, which is the most; release or redrive some: muster queue held ",
                     partition.ToString()));
  });
}

absl::StatusOr<std::vector<HeldKey>> HeldKeyStore::Release(const queue::QueueId& partition,
                                                           absl::Span<const HeldKey> keys) {
  std::vector<HeldKey> released;
  MUSTER_RETURN_IF_ERROR(Update(partition, [&](v1::HeldKeyRecord* record) -> absl::StatusOr<bool> {
    released.clear();
    auto* const entries = record->mutable_keys();
    const auto end =
        std::remove_if(entries->begin(), entries->end(), [&](const v1::HeldKeyEntry& entry) {
          const bool is_named = std::any_of(
              keys.begin(), keys.end(), [&](const HeldKey& held) { return IsSame(entry, held); });
          if (is_named) released.push_back(FromRecord(entry));
          return is_named;
        });
    entries->erase(end, entries->end());
    return !released.empty();
  }));
  return released;
}

}  // namespace muster::item
