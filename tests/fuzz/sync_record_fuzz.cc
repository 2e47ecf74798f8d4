// SPDX-License-Identifier: Apache-2.0

// A record of the sync store: once as it is, once as the payload of a checksum that is right.
#include <string>

#include "absl/strings/match.h"
#include "muster/rocksdb/checked_value.h"
#include "muster/sync/rocksdb/record_codec.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

void CheckRecord(const std::string& value) {
  const auto record = sync::rocksdb::DecodeRecord("next/batch", value);
  if (record.ok()) {
    Must(record->version != sync::kAbsent, "a record that is there has a version");
    Must(sync::rocksdb::EncodeRecord(record->data, record->version) == value,
         "a record that is read and written again is the same bytes");
    return;
  }
  Must(absl::IsDataLoss(record.status()) || absl::IsFailedPrecondition(record.status()),
       "a record is damaged, or of a newer format");
  Must(absl::StrContains(record.status().message(), "next/batch"), "an error names the key");
}

void CheckData(absl::string_view data) {
  std::string value = sync::rocksdb::EncodeRecord(data, 1 + data.size());
  const auto record = sync::rocksdb::DecodeRecord("next/batch", value);
  Must(record.ok() && record->data == data && record->version == 1 + data.size(),
       "what is written is read as it was");
  const size_t at = data.empty() ? 0 : static_cast<unsigned char>(data[0]) % value.size();
  value[at] = static_cast<char>(value[at] ^ 1);
  Must(absl::IsDataLoss(sync::rocksdb::DecodeRecord("next/batch", value).status()),
       "a damaged record is DataLoss");
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  const absl::string_view text = Text(data, size);
  CheckRecord(std::string(text));
  CheckRecord(muster::rocksdb::CheckedValue(text));
  CheckData(text);
  return 0;
}
