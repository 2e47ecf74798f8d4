// SPDX-License-Identifier: Apache-2.0
#include "muster/rocksdb/record_cursor.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "muster/base/check.h"
#include "muster/rocksdb/database.h"
#include "rocksdb/db.h"
#include "rocksdb/iterator.h"

namespace muster::rocksdb {
namespace {

// Where so many of the highest byte still lie in it, a gap has no end.
constexpr size_t kEndlessBytes = 24;
// No key is longer.
constexpr size_t kMaxKeyBytes = size_t{16} << 10;

// The smallest key above `key`.
std::string After(std::string key) { return key.append(1, '\0'); }

}  // namespace

RecordCursor::RecordCursor(const Database* database, size_t family, absl::string_view from)
    : database_(database), family_(family) {
  Open(std::string(from));
  PassGap(std::string(from));
}

RecordCursor::~RecordCursor() = default;

bool RecordCursor::valid() const { return it_->Valid(); }
absl::Status RecordCursor::status() const { return ToStatus(it_->status(), database_->dir()); }
absl::string_view RecordCursor::key() const { return ToView(it_->key()); }
absl::string_view RecordCursor::value() const { return ToView(it_->value()); }
bool RecordCursor::AtDamage() const { return !it_->Valid() && it_->status().IsCorruption(); }

void RecordCursor::Next() {
  std::string from = After(std::string(key()));
  it_->Next();
  PassGap(std::move(from));
}

// An iterator that failed once stays so, hence a new one for each look.
void RecordCursor::Open(const std::string& from) {
  ::rocksdb::ReadOptions options;
  options.fill_cache = false;
  it_.reset(database_->db()->NewIterator(options, database_->family(family_)));
  it_->Seek(from);
}

void RecordCursor::PassGap(std::string from) {
  if (!AtDamage()) return;
  ++gaps_;
  Open(from);
  while (AtDamage()) {
    std::optional<std::string> behind = BehindBlock(from);
    if (!behind.has_value()) return;
    // Else the loop would not end.
    MUSTER_CHECK(*behind > from, "from ", absl::BytesToHexString(from), ", behind ",
                 absl::BytesToHexString(*behind));
    from = *std::move(behind);
    Open(from);
  }
}

std::optional<std::string> RecordCursor::BehindBlock(const std::string& from) {
  const std::string block = it_->status().ToString();
  bool disk_failed = false;
  const auto in_block = [&](const std::string& key) {
    if (key <= from) return true;
    if (disk_failed) return false;
    Open(key);
    disk_failed = !it_->status().ok() && !it_->status().IsCorruption();
    return AtDamage() && it_->status().ToString() == block;
  };
  std::string last;  // the start of the last key that is in the block
  while (in_block(After(last))) {
    int in = 0;
    if (last.size() < from.size() && from.compare(0, last.size(), last) == 0) {
      in = static_cast<unsigned char>(from[last.size()]);
    }
    // The keys of a block mostly start alike: so the next byte is tried before the halves.
    int out = 256;
    for (int byte = in + 1; out - in > 1; byte = (in + out) / 2) {
      (in_block(last + static_cast<char>(byte)) ? in : out) = byte;
    }
    last.push_back(static_cast<char>(in));
    if (last.size() > kMaxKeyBytes || last == std::string(kEndlessBytes, '\xff')) {
      if (!disk_failed) Open(from);
      return std::nullopt;
    }
  }
  if (disk_failed) return std::nullopt;
  return After(last);
}

}  // namespace muster::rocksdb
