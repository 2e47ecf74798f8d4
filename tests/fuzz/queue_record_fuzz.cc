// SPDX-License-Identifier: Apache-2.0

// The records of the embedded queue. The first byte chooses the record, the rest are its fields:
// once as they are, and once under a valid checksum, which a mutation would never find.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/queue/rocksdb/codec.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using namespace queue::rocksdb;

constexpr char kKey[] = "a key of 16 byte";
constexpr size_t kStateFieldBytes = 40;
constexpr size_t kDedupFieldBytes = 40;
constexpr char kDedupVersion = 2;

// |ver:1|sum:8|fields|, as in a body's header.
std::string Seal(absl::string_view fields, absl::string_view key) {
  return absl::StrCat(EncodeBodyHeader(fields, key), fields);
}

// |ver:1|fields|sum:4|; the low half of the sum that a body of the same bytes would have.
std::string SealState(absl::string_view text) {
  std::string fields(kStateFieldBytes, '\0');
  text.substr(0, fields.size()).copy(fields.data(), fields.size());
  fields[0] = 1;
  fields[1] &= kHeld | kBegan | kSuspect;
  return absl::StrCat(fields, EncodeBodyHeader(fields, kKey).substr(1, 4));
}

// The records of deduplication had three fields fewer in their first version; the sum is the same.
std::string SealDedup(absl::string_view fields, absl::string_view key) {
  std::string record = Seal(fields, key);
  if (fields.size() == kDedupFieldBytes) record[0] = kDedupVersion;
  return record;
}

// `exact`: a record's content has only one encoding.
template <typename Decode, typename Encode>
void CheckRecord(const std::string& record, bool exact, Decode decode, Encode encode) {
  const auto value = decode(record);
  if (!value.has_value()) return;
  const std::string again = encode(*value);
  Must(!exact || again == record, "a record that is read and written again is the same bytes");
  const auto twice = decode(again);
  Must(twice.has_value() && encode(*twice) == again, "what is written is read as it was");
  std::string damaged = again;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  Must(!decode(damaged).has_value(), "a damaged record is noticed");
}

void CheckBody(absl::string_view body) {
  std::string record = Seal(body, kKey);
  Must(SalvageBody(record) == body, "a body can be salvaged");
  std::string elsewhere = record;
  Must(!StripToBody(&elsewhere, "another key") && elsewhere == record,
       "a body under another key is noticed, and left as it is");
  Must(StripToBody(&record, kKey) && record == body, "a body is read as it was");
  record = std::string(body);
  if (!StripToBody(&record, kKey)) Must(record == body, "what is damaged is left as it is");
}

void CheckNames(absl::string_view text) {
  constexpr uint64_t kSalt = 12345;
  if (const auto parts = DecodeReceipt(kSalt, text)) {
    const auto again = DecodeReceipt(kSalt, EncodeReceipt(kSalt, *parts));
    Must(again && again->seq == parts->seq && again->lease == parts->lease, "receipts are stable");
  }
  if (const auto seq = SequenceOf(kSalt, 1, text)) {
    Must(SequenceOf(kSalt, 1, MessageIdOf(kSalt, 1, *seq)) == seq, "message ids are stable");
  }
  if (const auto address = ParseMessageKey(text)) {
    Must(MessageKey(address->queue, address->seq) == text, "a message key names its address");
  }
  if (text.size() < 16) return;
  const MessageAddress address = *ParseMessageKey(text.substr(0, 16));
  const uint64_t seq = address.seq & kMaxSequence;
  const uint64_t queue = address.queue & kMaxQueueNumber;
  Must(SequenceOf(kSalt, queue, MessageIdOf(kSalt, queue, seq)) == seq, "an id is its sequence");
  const auto parts = DecodeReceipt(kSalt, EncodeReceipt(kSalt, {address.seq, address.queue}));
  Must(parts && parts->seq == address.seq && parts->lease == address.queue, "a receipt is read");
}

void CheckFields(uint8_t kind, const std::string& plain, const std::string& sealed) {
  const auto with_key = [](auto function) {
    return [function](const auto& value) { return function(value, kKey); };
  };
  for (const std::string& record : {plain, sealed}) {
    if (kind == 1) CheckRecord(record, true, with_key(DecodePoison), with_key(EncodePoison));
    // A record of the first version is written again as one of the second.
    const bool is_current = !record.empty() && record[0] == kDedupVersion;
    if (kind == 2) CheckRecord(record, is_current, with_key(DecodeDedup), with_key(EncodeDedup));
    if (kind == 3) CheckRecord(record, true, DecodeCounters, EncodeCounters);
    if (kind == 4) CheckRecord(record, false, with_key(DecodeQueue), with_key(EncodeQueue));
    if (kind == 5) CheckRecord(record, true, DecodeStore, EncodeStore);
    if (kind == 6) CheckRecord(record, true, with_key(DecodeState), with_key(EncodeState));
  }
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  if (size == 0) return 0;
  const uint8_t kind = data[0] % 8;
  const absl::string_view text = Text(data + 1, size - 1);
  if (kind == 0) CheckBody(text);
  if (kind == 7) CheckNames(text);
  const std::string key = kind == 3 ? "" : kind == 5 ? StoreKey() : kKey;
  const std::string sealed = kind == 6   ? SealState(text)
                             : kind == 2 ? SealDedup(text, key)
                                         : Seal(text, key);
  CheckFields(kind, std::string(text), sealed);
  return 0;
}
