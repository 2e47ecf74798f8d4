// SPDX-License-Identifier: Apache-2.0

// The records of the ledger. The first byte chooses the record, the rest is its protobuf.
#include <google/protobuf/stubs/logging.h>

#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "muster/ledger/rocksdb/batch_codec.h"
#include "muster/rocksdb/checked_value.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using ledger::Batch;
using namespace ledger::rocksdb;

constexpr uint64_t kNumber = 1;

void CheckDamage(const absl::Status& status) {
  Must(absl::IsDataLoss(status), "a damaged record is DataLoss");
  Must(absl::StrContains(status.message(), "batch 1"), "a damaged record names its batch");
}

// The part of a batch that `decode` reads, written by `encode`; nothing when it is damaged.
template <typename Decode, typename Encode>
std::optional<std::string> Rewrite(absl::string_view value, Decode decode, Encode encode) {
  Batch batch;
  if (const absl::Status read = decode(value, kNumber, &batch); !read.ok()) {
    CheckDamage(read);
    return std::nullopt;
  }
  // No SLA is infinite, and a protobuf cannot say it.
  if (batch.sla.has_value() && absl::AbsDuration(*batch.sla) == absl::InfiniteDuration()) {
    return std::nullopt;
  }
  return encode(batch);
}

std::optional<std::string> RewriteItems(absl::string_view value) {
  const auto items = DecodeItems(value, kNumber);
  if (items.ok()) return EncodeItems(*items);
  CheckDamage(items.status());
  return std::nullopt;
}

template <typename Function>
void CheckRecord(const std::string& value, Function rewrite) {
  const std::optional<std::string> again = rewrite(value);
  if (again.has_value()) Must(rewrite(*again) == again, "what is written is read as it was");
}

}  // namespace
}  // namespace muster::fuzz

// protobuf reports each text that is no UTF-8 on stderr, which takes more time than to read it.
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  if (size == 0) return 0;
  const absl::string_view payload = Text(data + 1, size - 1);
  for (const std::string& value : {std::string(payload), muster::rocksdb::CheckedValue(payload)}) {
    switch (data[0] % 3) {
      case 0:
        CheckRecord(value, [](auto v) { return Rewrite(v, DecodeRecord, EncodeRecord); });
        break;
      case 1:
        CheckRecord(value, [](auto v) { return Rewrite(v, DecodeProgress, EncodeProgress); });
        break;
      default:
        CheckRecord(value, RewriteItems);
    }
  }
  return 0;
}
