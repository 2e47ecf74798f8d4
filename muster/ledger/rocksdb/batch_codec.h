// SPDX-License-Identifier: Apache-2.0

// The stored forms of a batch (proto/muster/v1/batch.proto), each in a
// muster::rocksdb::CheckedValue.
//
//   family "batches"   key: number, 8 bytes      value: BatchRecord, written once
//   family "progress"  key: number, 8 bytes      value: BatchProgress, rewritten as it grows
//   family "items"     key: number, first index  value: ItemRun, written once
//   family "requests"  key: request id           value: number of its newest batch, 8 bytes
//                      key: TenantKey            value: number of a batch that a newer one of its
//                                                       request id, of any tenant, hides, 8 bytes;
//                                                       an older muster wrote it without the number
//                                                       in the key, for the tenant's newest alone
//                      key: CopyKey              value: a copy of the BatchRecord, without its
//                                                       content; once the batch is cancelled with
//                                                       its progress, and rewritten with that
//
// All but a batch's record, and that it is cancelled, can be made again of what else is stored, so
// these alone are kept twice, in two families, and thus in two files. An older muster passes the
// copies by.
// A record that has content, or a claim on its request id, is written again without it, some time
// after its batch is over; its copy stays until the batch is deleted.
// Integers in keys are big-endian. To change a form, add proto fields; never reuse a number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "muster/ledger/batch_ledger.h"

namespace muster::ledger::rocksdb {

enum FamilyIndex : size_t { kBatches, kProgress, kItems, kRequests };

std::string BatchKey(uint64_t number);
// Of the copy of a batch's record. The ledger takes no such request id.
std::string CopyKey(uint64_t number);
// nullopt: `key` is that of no copy.
std::optional<uint64_t> NumberOfCopy(absl::string_view key);
// In the order of their numbers. A muster that has no batches of several tenants with one request
// id passes them by.
std::string TenantKey(absl::string_view tenant, absl::string_view request_id, uint64_t number);
// As an older muster wrote it.
std::string TenantKey(absl::string_view tenant, absl::string_view request_id);
// Whether it is of either form.
bool IsTenantKey(absl::string_view key);
// Whether a record of the family "requests" that is none of a request may have this key.
bool IsReserved(absl::string_view request_id);
std::string ItemsKey(uint64_t number, uint64_t first_index);
// Above all of them, and below those of the next batch.
std::string ItemsEnd(uint64_t number);

std::string EncodeRecord(const ledger::Batch& batch);
// The same without the content, for the copy; with the progress of a batch that is cancelled.
std::string EncodeCopy(const ledger::Batch& batch);
std::string EncodeProgress(const ledger::Batch& batch);
std::string EncodeItems(absl::Span<const ledger::ItemBoundary> items);

// Each fills its own fields of `batch`. DataLoss naming the batch.
absl::Status DecodeRecord(absl::string_view value, uint64_t number, ledger::Batch* batch);
absl::Status DecodeProgress(absl::string_view value, uint64_t number, ledger::Batch* batch);
// Of the record, and of the progress if the copy has it: then the state is kCancelled.
absl::Status DecodeCopy(absl::string_view value, uint64_t number, ledger::Batch* batch);
absl::StatusOr<std::vector<ledger::ItemBoundary>> DecodeItems(absl::string_view value,
                                                              uint64_t number);

}  // namespace muster::ledger::rocksdb
