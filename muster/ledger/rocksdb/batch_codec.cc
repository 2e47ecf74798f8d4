// SPDX-License-Identifier: Apache-2.0
#include "muster/ledger/rocksdb/batch_codec.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/ledger/batch_proto.h"
#include "muster/rocksdb/checked_value.h"
#include "muster/v1/batch.pb.h"

namespace muster::ledger::rocksdb {
namespace {

using ledger::Batch;
using ledger::ItemBoundary;

constexpr absl::string_view kCopyPrefix("\0record ", 8);  // with its NUL
constexpr absl::string_view kTenantPrefix("\0tenant ", 8);
constexpr absl::string_view kHiddenPrefix("\0hidden ", 8);

// Checks and parses `value` into `proto`.
template <typename Proto>
absl::Status Parse(absl::string_view value, absl::string_view what, Proto* proto) {
  MUSTER_ASSIGN_OR_RETURN(const absl::string_view payload,
                          muster::rocksdb::CheckedPayload(value, what));
  if (!proto->ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return absl::DataLossError(absl::StrCat(what, ": cannot be parsed"));
  }
  return absl::OkStatus();
}

std::string What(absl::string_view part, uint64_t number) {
  return absl::StrCat("ledger: ", part, " of batch ", number);
}

}  // namespace

std::string BatchKey(uint64_t number) {
  std::string key;
  muster::rocksdb::AppendKey(number, &key);
  return key;
}

std::string CopyKey(uint64_t number) {
  std::string key(kCopyPrefix);
  muster::rocksdb::AppendKey(number, &key);
  return key;
}

std::optional<uint64_t> NumberOfCopy(absl::string_view key) {
  if (key.size() != kCopyPrefix.size() + 8 || !absl::StartsWith(key, kCopyPrefix)) {
    return std::nullopt;
  }
  return muster::rocksdb::KeyNumber(key.substr(kCopyPrefix.size()));
}

// The lengths come first: otherwise two pairs could make one key, or part of one.
std::string TenantKey(absl::string_view tenant, absl::string_view request_id, uint64_t number) {
  std::string key(kHiddenPrefix);
  muster::rocksdb::AppendKey(tenant.size(), &key);
  muster::rocksdb::AppendKey(request_id.size(), &key);
  absl::StrAppend(&key, tenant, request_id);
  muster::rocksdb::AppendKey(number, &key);
  return key;
}

std::string TenantKey(absl::string_view tenant, absl::string_view request_id) {
  std::string key(kTenantPrefix);
  muster::rocksdb::AppendKey(tenant.size(), &key);
  absl::StrAppend(&key, tenant, request_id);
  return key;
}

bool IsTenantKey(absl::string_view key) {
  return absl::StartsWith(key, kTenantPrefix) || absl::StartsWith(key, kHiddenPrefix);
}

bool IsReserved(absl::string_view request_id) {
  return NumberOfCopy(request_id).has_value() || IsTenantKey(request_id);
}

std::string ItemsKey(uint64_t number, uint64_t first_index) {
  std::string key = BatchKey(number);
  muster::rocksdb::AppendKey(first_index, &key);
  return key;
}

std::string ItemsEnd(uint64_t number) {
  return absl::StrCat(BatchKey(number), std::string(sizeof(uint64_t) + 1, '\xff'));
}

std::string EncodeRecord(const Batch& batch) {
  return muster::rocksdb::CheckedValue(ledger::RecordOf(batch).SerializeAsString());
}

std::string EncodeCopy(const Batch& batch) {
  v1::BatchRecord record = ledger::RecordOf(batch);
  record.clear_content();
  if (batch.state == ledger::BatchState::kCancelled) {
    *record.mutable_cancelled() = ledger::ProgressOf(batch);
  }
  return muster::rocksdb::CheckedValue(record.SerializeAsString());
}

absl::Status DecodeRecord(absl::string_view value, uint64_t number, Batch* batch) {
  const std::string what = What("record", number);
  v1::BatchRecord record;
  MUSTER_RETURN_IF_ERROR(Parse(value, what, &record));
  // A sound record, but under another batch's key.
  if (record.number() != number) {
    return absl::DataLossError(absl::StrCat(what, ": it is that of batch ", record.number()));
  }
  return base::Annotate(ledger::Fill(record, batch), what);
}

std::string EncodeProgress(const Batch& batch) {
  return muster::rocksdb::CheckedValue(ledger::ProgressOf(batch).SerializeAsString());
}

absl::Status DecodeProgress(absl::string_view value, uint64_t number, Batch* batch) {
  const std::string what = What("progress", number);
  v1::BatchProgress progress;
  MUSTER_RETURN_IF_ERROR(Parse(value, what, &progress));
  return base::Annotate(ledger::Fill(progress, batch), what);
}

absl::Status DecodeCopy(absl::string_view value, uint64_t number, Batch* batch) {
  MUSTER_RETURN_IF_ERROR(DecodeRecord(value, number, batch));
  const std::string what = What("copy", number);
  v1::BatchRecord copy;
  MUSTER_RETURN_IF_ERROR(Parse(value, what, &copy));
  if (!copy.has_cancelled()) return absl::OkStatus();
  return base::Annotate(ledger::Fill(copy.cancelled(), batch), what);
}

std::string EncodeItems(absl::Span<const ItemBoundary> items) {
  v1::ItemRun run;
  ledger::AddTo(items, run.mutable_items());
  return muster::rocksdb::CheckedValue(run.SerializeAsString());
}

absl::StatusOr<std::vector<ItemBoundary>> DecodeItems(absl::string_view value, uint64_t number) {
  const std::string what = What("item boundaries", number);
  v1::ItemRun run;
  MUSTER_RETURN_IF_ERROR(Parse(value, what, &run));
  auto items = ledger::FromProtos(run.items());
  if (!items.ok()) return base::Annotate(items.status(), what);
  return items;
}

}  // namespace muster::ledger::rocksdb
