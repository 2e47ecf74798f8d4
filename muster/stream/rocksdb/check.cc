// SPDX-License-Identifier: Apache-2.0

// Checks the events of a stream store; StreamCatalog checks the records of streams and partitions.

#include "muster/stream/rocksdb/check.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/rocksdb/repair_session.h"
#include "muster/stream/event_codec.h"
#include "muster/stream/rocksdb/partition_log.h"
#include "muster/stream/rocksdb/rocksdb_event_stream_store.h"
#include "muster/stream/rocksdb/stream_catalog.h"

namespace muster::stream::rocksdb {
namespace {

using os::Damage;

class Check {
 public:
  explicit Check(muster::rocksdb::RepairSession* session) : session_(session), catalog_(session) {}

  absl::Status Run() {
    MUSTER_RETURN_IF_ERROR(catalog_.Read());
    MUSTER_RETURN_IF_ERROR(
        session_->ForEach(kEvents, [this](absl::string_view key, absl::string_view value) {
          session_->Count(1);
          return CheckEvent(key, value);
        }));
    MUSTER_RETURN_IF_ERROR(EndPartition());
    MUSTER_RETURN_IF_ERROR(CheckEmptyPartitions());
    return catalog_.Finish();
  }

 private:
  // How far the partition that is being read is sound.
  struct Progress {
    PartitionFacts* facts = nullptr;  // null: no partition is being read
    int64_t expected = 1;             // the offset that comes next
    int64_t end_bytes = 0;            // of the event before
    absl::Time appended = absl::UnixEpoch();
  };

  absl::Status CheckEvent(absl::string_view key, absl::string_view value);
  absl::Status BeginPartition(PartitionFacts* facts, int64_t first_offset);
  absl::Status EndPartition();
  // Partitions that should have events, and have none at all.
  absl::Status CheckEmptyPartitions();
  // The events from `at_.expected` to `through` are lost; `damaged`: the record in their place.
  absl::Status Lose(int64_t through, absl::string_view why, std::optional<std::string> damaged);
  // "" if nothing is wrong with the event, which its checksum has proved.
  static absl::StatusOr<std::string> WhyNotContent(const EventRecord& event);

  muster::rocksdb::RepairSession* const session_;  // not owned
  StreamCatalog catalog_;
  Progress at_;
};

absl::Status Check::CheckEvent(absl::string_view key, absl::string_view value) {
  const std::optional<EventAddress> address = AddressIn(key);
  PartitionFacts* const facts = address.has_value() ? catalog_.Find(address->id) : nullptr;
  if (facts == nullptr) {
    return catalog_.RemoveDamaged(
        kEvents, "event", key, value,
        address.has_value() ? "there is no such stream or partition" : "no record has such a key");
  }
  if (facts != at_.facts) MUSTER_RETURN_IF_ERROR(BeginPartition(facts, address->offset));
  if (address->offset < at_.expected) return absl::OkStatus();  // retention has passed it
  if (address->offset > at_.expected) {
    MUSTER_RETURN_IF_ERROR(Lose(address->offset - 1, "not there", std::nullopt));
  }
  const std::optional<EventRecord> event = DecodeEvent(value, key);
  if (!event.has_value()) return Lose(address->offset, "damaged", std::string(value));
  MUSTER_ASSIGN_OR_RETURN(const std::string why, WhyNotContent(*event));
  if (!why.empty()) return Lose(address->offset, why, std::string(value));
  at_.expected = std::max(address->offset, event->lost_through) + 1;
  at_.end_bytes = event->end_bytes;
  at_.appended = event->appended;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Check::WhyNotContent(const EventRecord& event) {
  if (event.lost_through > 0) return "";
  const absl::Status content = DecodeContent(event.content, "its content").status();
  if (content.ok()) return "";
  if (absl::IsDataLoss(content)) return std::string(content.message());
  return content;
}

absl::Status Check::BeginPartition(PartitionFacts* facts, int64_t first_offset) {
  MUSTER_RETURN_IF_ERROR(EndPartition());
  facts->has_events = true;
  // Without its record, which a first trim would have written, a partition begins at 1.
  int64_t first = 1;
  if (facts->damaged.has_value()) first = first_offset;
  if (facts->record.has_value()) first = facts->record->first;
  at_ = {.facts = facts, .expected = first};
  facts->first = first;
  return absl::OkStatus();
}

absl::Status Check::EndPartition() {
  PartitionFacts* const facts = at_.facts;
  if (facts == nullptr) return absl::OkStatus();
  if (facts->record.has_value() && at_.expected < facts->record->next) {
    MUSTER_RETURN_IF_ERROR(Lose(facts->record->next - 1, "not there", std::nullopt));
  }
  facts->rebuilt = {.first = facts->first,
                    .next = at_.expected,
                    .end_bytes = at_.end_bytes,
                    .last_appended = at_.appended};
  at_ = Progress();
  return absl::OkStatus();
}

absl::Status Check::CheckEmptyPartitions() {
  return catalog_.ForEachPartition([this](PartitionFacts* facts) -> absl::Status {
    if (facts->has_events || !facts->record.has_value()) return absl::OkStatus();
    if (facts->record->first == facts->record->next) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(BeginPartition(facts, facts->record->first));
    return EndPartition();
  });
}

absl::Status Check::Lose(int64_t through, absl::string_view why,
                         std::optional<std::string> damaged) {
  const int64_t from = std::exchange(at_.expected, through + 1);
  const std::string key = EventKey(at_.facts->id, from);
  Damage damage{.kind = "event",
                .name = absl::StrCat(at_.facts->name, from == through ? " event " : " events ",
                                     from, from == through ? "" : absl::StrCat(" to ", through)),
                .why = absl::StrCat(from == through ? "it is " : "they are ", why),
                .remedy = from == through ? "it is lost: readers pass over it"
                                          : "they are lost: readers pass over them"};
  if (damaged.has_value()) {
    at_.end_bytes += static_cast<int64_t>(damaged->size());
    damage.records = {session_->Stored(kEvents, key, *damaged)};
  }
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  session_->Put(kEvents, key, EncodeLost(at_.appended, at_.end_bytes, through, key));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<os::CheckSummary> CheckStreams(const std::string& dir,
                                              const StreamCheckOptions& options) {
  Options base;
  base.env = options.env;
  MUSTER_ASSIGN_OR_RETURN(
      const auto session,
      muster::rocksdb::RepairSession::Open(dir, "stream", StreamDatabase(base), options.check,
                                           /*may_begin_anew=*/true));
  MUSTER_RETURN_IF_ERROR(Check(session.get()).Run());
  return session->Finish();
}

}  // namespace muster::stream::rocksdb
