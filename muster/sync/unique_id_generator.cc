// SPDX-License-Identifier: Apache-2.0
#include "muster/sync/unique_id_generator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status.h"

namespace muster::sync {
namespace {

constexpr int64_t kFirstId = 1;
constexpr size_t kMaxShownBytes = 64;

bool IsPlainNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

absl::StatusOr<int64_t> Parse(const VersionedData& record, absl::string_view key) {
  int64_t first_free;
  if (!IsPlainNumber(record.data) || !absl::SimpleAtoi(record.data, &first_free) ||
      first_free < kFirstId) {
    return absl::DataLossError(absl::StrCat(
        "id record '", key, "' must hold a number, but holds '",
        absl::CHexEscape(absl::string_view(record.data).substr(0, kMaxShownBytes)), "'"));
  }
  return first_free;
}

}  // namespace

UniqueIdGenerator::UniqueIdGenerator(OptimisticSyncStore* store, absl::string_view key,
                                     UniqueIdOptions options)
    : store_(store),
      key_(key),
      options_{.range_size = std::max<int64_t>(options.range_size, 1),
               .max_retries = std::max(options.max_retries, 0),
               .begin_at = std::move(options.begin_at),
               .highest_given = std::move(options.highest_given)} {}

absl::StatusOr<int64_t> UniqueIdGenerator::NextId() {
  base::MutexLock lock(&mu_);
  if (next_ == end_) MUSTER_RETURN_IF_ERROR(ReserveLocked());
  MUSTER_CHECK(kFirstId <= next_ && next_ < end_, "next ", next_, ", end ", end_);
  return next_++;
}

void UniqueIdGenerator::DropRange() {
  base::MutexLock lock(&mu_);
  next_ = end_;
}

absl::Status UniqueIdGenerator::ReserveLocked() {
  int64_t least = 0;  // asked for once, however many races are lost
  for (int attempt = 0; attempt <= options_.max_retries; ++attempt) {
    MUSTER_ASSIGN_OR_RETURN(const bool reserved, TryReserveLocked(&least));
    if (reserved) return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat("id record '", key_, "': others were first ",
                                         options_.max_retries + 1, " times in a row"));
}

absl::StatusOr<int64_t> UniqueIdGenerator::FirstFreeLocked(const VersionedData& record) {
  if (record.version != kAbsent) return Parse(record, key_);
  if (options_.begin_at == nullptr) return kFirstId;
  MUSTER_ASSIGN_OR_RETURN(const int64_t first, options_.begin_at(end_ > 0));
  return std::max(first, kFirstId);
}

absl::StatusOr<int64_t> UniqueIdGenerator::BeyondGivenLocked(int64_t first) {
  const bool went_back = first < end_;
  if (options_.highest_given == nullptr || (asked_ && !went_back)) return first;
  MUSTER_ASSIGN_OR_RETURN(const std::optional<int64_t> highest, options_.highest_given());
  asked_ = highest.has_value();
  const int64_t given = std::min(highest.value_or(0), std::numeric_limits<int64_t>::max() - 1);
  return std::max({first, end_, given + 1});
}

absl::StatusOr<bool> UniqueIdGenerator::TryReserveLocked(int64_t* least) {
  absl::StatusOr<VersionedData> record = store_->Get(key_);
  if (!record.ok()) return base::Annotate(record.status(), "reading the id record");
  MUSTER_ASSIGN_OR_RETURN(int64_t first, FirstFreeLocked(*record));
  if (*least == 0) {
    MUSTER_ASSIGN_OR_RETURN(*least, BeyondGivenLocked(first));
  }
  first = std::max(first, *least);
  if (first > std::numeric_limits<int64_t>::max() - options_.range_size) {
    return absl::OutOfRangeError(absl::StrCat("id record '", key_, "' has no numbers left"));
  }
  const int64_t end = first + options_.range_size;
  absl::StatusOr<bool> written = store_->TryWrite(key_, absl::StrCat(end), record->version);
  // After an error the range may be reserved or not; leaving it unused costs a gap at most.
  if (!written.ok()) return base::Annotate(written.status(), "reserving ids");
  if (!*written) return false;
  next_ = first;
  end_ = end;
  return true;
}

}  // namespace muster::sync
