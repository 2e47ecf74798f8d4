// SPDX-License-Identifier: Apache-2.0

// An event: its content, and its record in the embedded engine.
#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "muster/stream/event_codec.h"
#include "muster/stream/rocksdb/codec.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

constexpr stream::rocksdb::PartitionId kPartition{.stream = 1, .partition = 2};

void CheckContent(absl::string_view bytes) {
  const auto event = stream::DecodeContent(bytes, "event 7");
  if (event.ok()) {
    Must(stream::EncodeContent(*event) == bytes,
         "a content that is read and written again is the same bytes");
    return;
  }
  Must(absl::IsDataLoss(event.status()) || absl::IsFailedPrecondition(event.status()),
       "a content is damaged, or of a newer format");
  Must(absl::StrContains(event.status().message(), "event 7"), "an error names the event");
}

void CheckRecord(absl::string_view content) {
  const std::string key = stream::rocksdb::EventKey(kPartition, 7);
  std::string record = stream::rocksdb::EncodeEvent(absl::FromUnixMicros(5), 100, content, key);
  const auto event = stream::rocksdb::DecodeEvent(record, key);
  Must(event.has_value() && event->content == content &&
           event->appended == absl::FromUnixMicros(5) &&
           event->end_bytes == 100 + static_cast<int64_t>(record.size()),
       "what is written is read as it was");
  const size_t at = content.empty() ? 0 : static_cast<unsigned char>(content[0]) % record.size();
  record[at] = static_cast<char>(record[at] ^ 1);
  Must(!stream::rocksdb::DecodeEvent(record, key).has_value(), "a damaged record is noticed");
}

// Bytes that the codec did not seal decode to a valid record or to none.
void CheckStray(absl::string_view bytes) {
  const std::string key = stream::rocksdb::StreamKey("a");
  if (const auto found = stream::rocksdb::DecodeStream(bytes, key); found.has_value()) {
    Must(stream::ValidateOptions(found->options).ok(), "options that are read are valid");
    Must(stream::rocksdb::EncodeStream(*found, key) == bytes,
         "a stream that is read and written again is the same bytes");
  }
  if (const auto found = stream::rocksdb::DecodePartition(bytes, key); found.has_value()) {
    Must(found->first >= 1 && found->first <= found->next, "an extent that is read is one");
  }
  (void)stream::rocksdb::DecodeEvent(bytes, key);
  (void)stream::rocksdb::DecodeStore(bytes);
}

// What the fuzzer cannot seal itself.
void CheckProperties(absl::string_view bytes) {
  stream::NewEvent event;
  while (!bytes.empty() && event.properties.size() < 100) {
    const auto size = static_cast<unsigned char>(bytes[0]);
    event.properties[std::string(bytes.substr(1, size / 2))] = std::string(bytes.substr(0, size));
    bytes.remove_prefix(std::min<size_t>(bytes.size(), size + 1));
  }
  event.key = std::string(bytes.substr(0, stream::kMaxKeyBytes));
  const auto again = stream::DecodeContent(stream::EncodeContent(event), "event 7");
  Must(again.ok() && again->key == event.key && again->properties == event.properties,
       "properties are read as they were written");
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  const absl::string_view text = Text(data, size);
  CheckContent(text);
  CheckRecord(text);
  CheckStray(text);
  CheckProperties(text);
  return 0;
}
