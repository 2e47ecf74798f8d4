// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/source.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/input/content_kind.h"

namespace muster::initiator::batch {

namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
// Bytes that are fingerprinted between two checks of the stop token.
constexpr uint64_t kPartBytes = uint64_t{64} << 20;

}  // namespace

input::SliceLimits SliceLimitsOf(const job::JobDefinition& job) {
  return {static_cast<uint32_t>(job.item.transactions), job.item.max_bytes};
}

absl::Status CheckNewContent(const input::ByteSource& content, const input::InputFormat& format) {
  MUSTER_RETURN_IF_ERROR(input::CheckContentKind(content, format));
  return input::ReadHeader(content, format).status();
}

absl::StatusOr<std::unique_ptr<BatchSource>> BatchSource::Open(const std::string& path,
                                                               const input::InputFormat& format,
                                                               bool is_new) {
  MUSTER_ASSIGN_OR_RETURN(auto file, input::FileSource::Open(path));
  if (is_new) MUSTER_RETURN_IF_ERROR(base::Annotate(CheckNewContent(*file, format), path));
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::canonical(path, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("find ", path));
  auto source = Over(std::move(file), absolute.string(), format);
  if (!source.ok()) return base::Annotate(source.status(), path);
  return source;
}

absl::StatusOr<std::unique_ptr<BatchSource>> BatchSource::Over(
    std::shared_ptr<const input::ByteSource> bytes, std::string path,
    const input::InputFormat& format) {
  MUSTER_ASSIGN_OR_RETURN(input::Header header, input::ReadHeader(*bytes, format));
  std::unique_ptr<BatchSource> source(
      new BatchSource(std::move(path), format, std::move(bytes), std::move(header)));
  MUSTER_ASSIGN_OR_RETURN(source->header_fingerprint_,
                          source->Fingerprint(0, source->FirstRecord().offset));
  return source;
}

BatchSource::BatchSource(std::string path, const input::InputFormat& format,
                         std::shared_ptr<const input::ByteSource> bytes, input::Header header)
    : path_(std::move(path)),
      format_(format),
      bytes_(std::move(bytes)),
      header_(std::move(header)) {}

input::SliceReader BatchSource::Slices(input::SliceStart start, input::SliceLimits limits) const {
  return input::SliceReader(bytes_.get(), format_, limits, start);
}

input::SliceStart BatchSource::FirstRecord() const { return header_.data; }

absl::StatusOr<ledger::ItemBoundary> BatchSource::BoundaryOf(const input::Slice& slice) const {
  ledger::ItemBoundary item{slice.offset,
                            slice.length,
                            slice.first_line,
                            slice.transactions,
                            base::Fingerprint(slice.data),
                            slice.oversized};
  item.multiline = slice.multiline;
  if (item.oversized) {
    MUSTER_ASSIGN_OR_RETURN(item.content, Fingerprint(item.offset, item.length));
  }
  return item;
}

template <typename Visit>
absl::Status BatchSource::ReadPieces(uint64_t offset, uint64_t length, Visit visit) const {
  std::string piece(std::min(length, kPieceBytes), '\0');
  while (length > 0) {
    const size_t wanted = std::min<uint64_t>(length, piece.size());
    MUSTER_ASSIGN_OR_RETURN(const size_t bytes, bytes_->Read(offset, piece.data(), wanted));
    if (bytes < wanted) {
      return absl::OutOfRangeError(absl::StrCat(path_, " ends at byte ", offset + bytes));
    }
    visit(absl::string_view(piece.data(), bytes));
    offset += bytes;
    length -= bytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<input::SliceStart> BatchSource::After(const ledger::ItemBoundary& item) const {
  input::SliceStart next{item.offset + item.length, item.first_line};
  MUSTER_RETURN_IF_ERROR(ReadPieces(item.offset, item.length, [&next](absl::string_view piece) {
    next.line += std::count(piece.begin(), piece.end(), '\n');
  }));
  return next;
}

absl::StatusOr<std::string> BatchSource::Read(const ledger::ItemBoundary& item) const {
  std::string slice;
  slice.reserve(item.length);
  MUSTER_RETURN_IF_ERROR(ReadPieces(item.offset, item.length, [&slice](absl::string_view piece) {
    slice.append(piece.data(), piece.size());
  }));
  return slice;
}

absl::StatusOr<base::Fingerprint128> BatchSource::Fingerprint(uint64_t offset, uint64_t length,
                                                              const std::stop_token& stop) const {
  base::Fingerprinter fingerprinter;
  const auto add = [&fingerprinter](absl::string_view piece) { fingerprinter.Update(piece); };
  while (length > 0) {
    if (stop.stop_requested()) return absl::CancelledError("stopped while reading the input");
    const uint64_t part = std::min(length, kPartBytes);
    MUSTER_RETURN_IF_ERROR(ReadPieces(offset, part, add));
    offset += part;
    length -= part;
  }
  return fingerprinter.Digest();
}

absl::StatusOr<BlockHashes> CheckSealed(const input::ByteSource& source,
                                        const ledger::SealedContent& sealed,
                                        const std::stop_token& stop) {
  if (source.size() != sealed.size) {
    return absl::DataLossError(
        absl::StrCat("it has ", source.size(), " bytes, and was sealed with ", sealed.size));
  }
  base::Fingerprinter fingerprinter;
  BlockHashes hashes;
  std::string piece(std::min(sealed.size, kPieceBytes), '\0');
  for (uint64_t offset = 0; offset < sealed.size;) {
    if (stop.stop_requested()) return absl::CancelledError("stopped while reading the content");
    MUSTER_ASSIGN_OR_RETURN(const size_t bytes, source.Read(offset, piece.data(), piece.size()));
    if (bytes == 0) return absl::DataLossError(absl::StrCat("it ends at byte ", offset));
    fingerprinter.Update(absl::string_view(piece.data(), bytes));
    hashes.Append(offset, absl::string_view(piece.data(), bytes));
    offset += bytes;
  }
  if (fingerprinter.Digest() == sealed.hash) return hashes;
  return absl::DataLossError("its bytes are not those that were sealed");
}

namespace {

struct HeldText {
  explicit HeldText(std::string content) : text(std::move(content)), source(text) {}

  const std::string text;
  const input::TextSource source;
};

}  // namespace

std::vector<ledger::ItemBoundary> SplitInline(const job::JobDefinition& job,
                                              absl::string_view content) {
  std::vector<ledger::ItemBoundary> items;
  if (job.order_by.has_value()) return items;  // the enqueuer groups them
  const std::shared_ptr<const input::ByteSource> bytes = SourceOf(std::string(content));
  if (!CheckNewContent(*bytes, job.input).ok()) return items;
  const auto source = BatchSource::Over(bytes, "", job.input);
  if (!source.ok()) return items;
  input::SliceReader slices = (*source)->Slices((*source)->FirstRecord(), SliceLimitsOf(job));
  while (items.size() < kMaxInlineItems) {
    const absl::StatusOr<std::optional<input::Slice>> slice = slices.Next();
    if (!slice.ok() || !slice->has_value()) return items;
    const absl::StatusOr<ledger::ItemBoundary> item = (*source)->BoundaryOf(**slice);
    if (!item.ok()) return items;
    items.push_back(*item);
  }
  return items;
}

absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenUsersContent(
    const ledger::Batch& batch) {
  return input::FileSource::Open(batch.source_path);
}

std::shared_ptr<const input::ByteSource> SourceOf(std::string content) {
  const auto held = std::make_shared<const HeldText>(std::move(content));
  return {held, &held->source};
}

}  // namespace muster::initiator::batch
