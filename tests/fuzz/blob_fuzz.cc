// SPDX-License-Identifier: Apache-2.0

// A blob's file: the input is taken as a file, as the content behind a valid checksum, and as a
// body.
#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/blob/file/blob_codec.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

constexpr char kName[] = "batch-1-item-7";
constexpr size_t kCheckedAt = 20;  // blob_codec.h draws the form
constexpr size_t kSizeAt = 22;
constexpr size_t kBodyAt = 30;

void AppendBigEndian(uint64_t number, std::string* out) {
  for (int shift = 56; shift >= 0; shift -= 8) out->push_back(static_cast<char>(number >> shift));
}

std::string Seal(std::string checked) {
  // Sets a size below 64 KiB: a decoder allocates as much as a blob with a valid checksum promises.
  const size_t from = std::min(kSizeAt - kCheckedAt, checked.size());
  std::fill_n(checked.begin() + static_cast<ptrdiff_t>(from),
              std::min<size_t>(6, checked.size() - from), '\0');
  const base::Fingerprint128 sum = base::Fingerprint(absl::StrCat(kName, checked));
  std::string file = "MBLB";
  AppendBigEndian(sum.high, &file);
  AppendBigEndian(sum.low, &file);
  return file + checked;
}

void CheckFile(const std::string& file) {
  const absl::StatusOr<std::string> body = blob::file::DecodeBlob(kName, file);
  if (body.ok()) {
    const std::string again = blob::file::EncodeBlob(kName, *body);
    Must(*blob::file::DecodeBlob(kName, again) == *body, "what is read can be written again");
    return;
  }
  Must(absl::IsDataLoss(body.status()) || absl::IsFailedPrecondition(body.status()),
       "a blob is damaged, or of a newer format");
  Must(absl::StrContains(body.status().message(), kName), "an error names the blob");
}

void CheckBody(absl::string_view body) {
  std::string file = blob::file::EncodeBlob(kName, body);
  Must(file.size() <= kBodyAt + body.size(), "a body is compressed only if that makes it smaller");
  Must(*blob::file::DecodeBlob(kName, file) == body, "what is written is read as it was");
  Must(absl::IsDataLoss(blob::file::DecodeBlob("batch-1-item-8", file).status()),
       "a blob under another name is DataLoss");
  const size_t at = body.empty() ? 0 : static_cast<unsigned char>(body[0]) % file.size();
  file[at] = static_cast<char>(file[at] ^ 1);
  Must(absl::IsDataLoss(blob::file::DecodeBlob(kName, file).status()), "damage is DataLoss");
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  const absl::string_view text = Text(data, size);
  CheckFile(std::string(text));
  CheckFile(Seal(std::string(text)));
  CheckBody(text);
  return 0;
}
