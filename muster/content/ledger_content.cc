// SPDX-License-Identifier: Apache-2.0
#include "muster/content/ledger_content.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/damage.h"
#include "muster/base/status.h"
#include "muster/item/work_item_codec.h"

namespace muster::content {
namespace {

// The words for an item whose bytes are gone, with the place where a person may look.
absl::Status Damaged(const ItemReference& item, const ledger::ItemBoundary& boundary,
                     absl::string_view why) {
  return absl::DataLossError(absl::StrCat("item ", item.batch, "/", item.index, " at byte ",
                                          boundary.offset, " (line ", boundary.first_line,
                                          "): ", why));
}

// The content in a blob of the item: a copy that was kept has it as it is; one that did not fit
// into its message, which reads it there, may have it compressed. nullopt: neither.
std::optional<std::string> ContentIn(std::string blob, const ItemReference& item) {
  if (base::Fingerprint(blob) == item.hash) return blob;
  if (item.bytes > item::kMaxRawBytes) return std::nullopt;
  std::string raw(item.bytes, '\0');
  if (!item::Decompress(blob, &raw) || base::Fingerprint(raw) != item.hash) return std::nullopt;
  return raw;
}

}  // namespace

absl::Status ReadAt(const input::ByteSource& source, const ItemReference& item,
                    const ledger::ItemBoundary& boundary, std::string* slice) {
  if (boundary.length > item::kMaxRawBytes) {
    return Damaged(item, boundary, "the ledger says that it is too long");
  }
  slice->resize(boundary.length);
  const absl::StatusOr<size_t> read =
      source.Read(boundary.offset, slice->data(), static_cast<size_t>(boundary.length));
  if (absl::IsFailedPrecondition(read.status())) {
    return Damaged(item, boundary, read.status().message());
  }
  MUSTER_RETURN_IF_ERROR(read.status());
  if (*read < boundary.length) return Damaged(item, boundary, "the source ends before it does");
  if (base::Fingerprint(*slice) != item.hash) {
    return Damaged(item, boundary, "its bytes have changed since the batch was split");
  }
  return absl::OkStatus();
}

absl::Status LedgerContent::ReadSource(const ItemReference& item, std::string* slice) {
  MUSTER_ASSIGN_OR_RETURN(const ledger::ItemBoundary boundary, boundaries_.Find(item));
  const absl::StatusOr<Source> source = deps_.open(item.batch);
  const absl::Status& opened = source.status();
  if (absl::IsNotFound(opened) || absl::IsPermissionDenied(opened) ||
      absl::IsInvalidArgument(opened)) {
    return Damaged(item, boundary, opened.message());
  }
  MUSTER_RETURN_IF_ERROR(opened);
  return ReadAt(**source, item, boundary, slice);
}

absl::Status LedgerContent::Read(const ItemReference& item, std::string* slice) {
  const absl::Status read = ReadSource(item, slice);
  if (!absl::IsDataLoss(read)) return read;
  MUSTER_ASSIGN_OR_RETURN(const bool has_copy, ReadCopy(item, slice));
  if (has_copy) return absl::OkStatus();
  base::NoteDamage(base::Damaged::kContent);
  if (deps_.on_damage) deps_.on_damage(item, read);
  return read;
}

absl::StatusOr<bool> LedgerContent::ReadCopy(const ItemReference& item, std::string* slice) {
  absl::StatusOr<std::string> copy =
      deps_.blobs->Get(item::BlobName(item.batch, item.index, item.owner));
  if (absl::IsNotFound(copy.status())) return false;
  MUSTER_RETURN_IF_ERROR(copy.status());
  std::optional<std::string> content = ContentIn(*std::move(copy), item);
  if (!content.has_value()) return false;
  *slice = *std::move(content);
  return true;
}

absl::Status LedgerContent::KeepForRedrive(const ItemReference& item) {
  return deps_.keeps_copies ? Copy(item) : absl::OkStatus();
}

absl::Status LedgerContent::Copy(const ItemReference& item) {
  std::string slice;
  // What is there may be what the dead letter's message refers to: only its form fits the message.
  const absl::StatusOr<bool> is_there = ReadCopy(item, &slice);
  if (is_there.ok() && *is_there) return absl::OkStatus();
  if (!is_there.ok() && !absl::IsDataLoss(is_there.status())) return is_there.status();
  MUSTER_RETURN_IF_ERROR(ReadSource(item, &slice));
  return deps_.blobs->Put(item::BlobName(item.batch, item.index, item.owner), slice);
}

}  // namespace muster::content
