// SPDX-License-Identifier: Apache-2.0
#include "muster/rocksdb/checked_value.h"

#include "absl/strings/str_cat.h"
#include "muster/base/damage.h"
#include "muster/base/fingerprint.h"

namespace muster::rocksdb {
namespace {

constexpr size_t kChecksumBytes = 8;

}  // namespace

void AppendKey(uint64_t number, std::string* key) {
  for (int shift = 56; shift >= 0; shift -= 8) key->push_back(static_cast<char>(number >> shift));
}

uint64_t KeyNumber(absl::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes.substr(0, 8)) {
    number = number << 8 | static_cast<unsigned char>(byte);
  }
  return number;
}

std::string CheckedValue(absl::string_view payload) {
  std::string value;
  value.reserve(kChecksumBytes + payload.size());
  AppendKey(base::Fingerprint(payload).high, &value);
  value.append(payload.data(), payload.size());
  return value;
}

absl::StatusOr<absl::string_view> CheckedPayload(absl::string_view value, absl::string_view what) {
  if (value.size() < kChecksumBytes) {
    base::NoteDamage(base::Damaged::kStore);
    return absl::DataLossError(absl::StrCat(what, ": only ", value.size(), " bytes are stored"));
  }
  const absl::string_view payload = value.substr(kChecksumBytes);
  if (KeyNumber(value) != base::Fingerprint(payload).high) {
    base::NoteDamage(base::Damaged::kStore);
    return absl::DataLossError(absl::StrCat(what, ": its checksum does not match"));
  }
  return payload;
}

}  // namespace muster::rocksdb
