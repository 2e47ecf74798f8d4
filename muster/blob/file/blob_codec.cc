// SPDX-License-Identifier: Apache-2.0
#include "muster/blob/file/blob_codec.h"

#include <zstd.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/damage.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status.h"
#include "muster/blob/blob_store.h"

namespace muster::blob::file {
namespace {

constexpr absl::string_view kMagic = "MBLB";
constexpr size_t kChecksumAt = 4;
constexpr size_t kCheckedAt = 20;  // the checksum covers all from here on
constexpr size_t kCodingAt = 21;
constexpr size_t kSizeAt = 22;
constexpr size_t kBodyAt = 30;

constexpr char kFormat = 1;
constexpr char kRaw = 0;
constexpr char kZstd = 1;

// Bodies are written once and read once, soon after: speed counts for more than size.
constexpr int kLevel = 1;

void PutBigEndian(uint64_t number, char* to) {
  for (int i = 0; i < 8; ++i) to[i] = static_cast<char>(number >> (56 - 8 * i));
}

uint64_t BigEndian(const char* from) {
  uint64_t number = 0;
  for (int i = 0; i < 8; ++i) number = number << 8 | static_cast<unsigned char>(from[i]);
  return number;
}

base::Fingerprint128 Checksum(absl::string_view name, absl::string_view checked) {
  base::Fingerprinter fingerprinter;
  fingerprinter.Update(name);
  fingerprinter.Update(checked);
  return fingerprinter.Digest();
}

// Appends the compressed body if it is smaller than the body itself.
bool AppendCompressed(absl::string_view body, std::string* file) {
  const size_t header = file->size();
  file->resize(header + ZSTD_compressBound(body.size()));
  const size_t size =
      ZSTD_compress(file->data() + header, file->size() - header, body.data(), body.size(), kLevel);
  const bool pays = ZSTD_isError(size) == 0 && size < body.size();
  file->resize(header + (pays ? size : 0));
  return pays;
}

absl::Status Damaged(absl::string_view name, absl::string_view why) {
  base::NoteDamage(base::Damaged::kBlob);
  return absl::DataLossError(absl::StrCat("blob '", name, "': ", why));
}

absl::Status CheckEnvelope(absl::string_view name, absl::string_view file) {
  if (file.size() < kBodyAt) return Damaged(name, "its file is cut off");
  if (file.substr(0, kMagic.size()) != kMagic) return Damaged(name, "its file is no blob");
  const base::Fingerprint128 stored{.high = BigEndian(&file[kChecksumAt]),
                                    .low = BigEndian(&file[kChecksumAt + 8])};
  if (Checksum(name, file.substr(kCheckedAt)) != stored) {
    return Damaged(name, "its checksum does not match");
  }
  if (file[kCheckedAt] != kFormat) {
    return absl::FailedPreconditionError(absl::StrCat("blob '", name, "' has format ",
                                                      static_cast<int>(file[kCheckedAt]),
                                                      ", which this muster does not know"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Decompress(absl::string_view name, absl::string_view compressed,
                                       size_t size) {
  std::string body(size, '\0');
  const size_t got = ZSTD_decompress(body.data(), size, compressed.data(), compressed.size());
  if (got != size) return Damaged(name, "it does not decompress to its size");
  return body;
}

}  // namespace

size_t MaxEncodedBytes() { return kBodyAt + blob::kMaxBlobBytes; }

std::string EncodeBlob(absl::string_view name, absl::string_view body) {
  MUSTER_CHECK(body.size() <= blob::kMaxBlobBytes, "blob '", name, "', bytes ", body.size());
  std::string file(kBodyAt, '\0');
  kMagic.copy(file.data(), kMagic.size());
  file[kCheckedAt] = kFormat;
  PutBigEndian(body.size(), &file[kSizeAt]);
  if (AppendCompressed(body, &file)) {
    file[kCodingAt] = kZstd;
  } else {
    file[kCodingAt] = kRaw;
    file.append(body.data(), body.size());
  }
  const base::Fingerprint128 checksum = Checksum(name, absl::string_view(file).substr(kCheckedAt));
  PutBigEndian(checksum.high, &file[kChecksumAt]);
  PutBigEndian(checksum.low, &file[kChecksumAt + 8]);
  return file;
}

absl::StatusOr<std::string> DecodeBlob(absl::string_view name, absl::string_view file) {
  MUSTER_RETURN_IF_ERROR(CheckEnvelope(name, file));
  const uint64_t size = BigEndian(&file[kSizeAt]);
  const absl::string_view stored = file.substr(kBodyAt);
  if (size > blob::kMaxBlobBytes) return Damaged(name, "its size is beyond the limit");
  if (file[kCodingAt] == kZstd) return Decompress(name, stored, size);
  if (file[kCodingAt] != kRaw || stored.size() != size) {
    return Damaged(name, "its header makes no sense");
  }
  return std::string(stored);
}

}  // namespace muster::blob::file
