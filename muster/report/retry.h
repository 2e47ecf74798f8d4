// SPDX-License-Identifier: Apache-2.0

// The retry of what failed of a batch, rejected transactions and items that were given up as a
// whole: which batch has which of them, so that each is retried once.
//
//   ClaimRejections ──► claim without a batch ──RecordRetry──► claim of a batch
//                             │                                   │
//                             └──── either batch is forgotten: its transactions are free ◄──┘
//
// A claimed item stays given up: neither a redrive nor a late result counts it in its own batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster::report {

// Bound of one claim, so that its transaction stays short.
inline constexpr int64_t kMaxClaimedRejections = 50'000;
// Lines, or items, that a claim may name.
inline constexpr size_t kMaxNamedLines = 1000;
// The line that stands for an item as a whole.
inline constexpr int64_t kWholeItem = 0;
// Retries of a batch that its progress names.
inline constexpr size_t kMaxShownRetries = 100;

// What is retried of a batch: rejections, or items that were given up. Neither is named: all that
// are not claimed yet.
struct RetrySelection {
  std::vector<int64_t> lines = {};   // where rejected transactions begin
  std::vector<uint64_t> items = {};  // not beside lines
  bool rejections_only = false;      // of all

  bool is_all() const { return lines.empty() && items.empty(); }
};

// Transactions of a batch that are retried together.
struct RetryClaim {
  int64_t retry = 0;  // its id, which no other claim of any batch has
  int64_t transactions = 0;
  uint64_t retried_in = 0;  // the batch that has them; 0: it was not told yet

  friend bool operator==(const RetryClaim&, const RetryClaim&) = default;
};

struct RetryClaims {
  std::vector<RetryClaim> claims;
  bool more = false;  // of all: others are left to claim
};

// A claimed transaction, or kWholeItem behind all of an item that was given up.
struct RetriedTransaction {
  uint64_t item = 0;
  int64_t line = 0;
  int64_t retried_line = 0;  // where it begins in the batch that retries it; 0: nowhere

  friend bool operator==(const RetriedTransaction&, const RetriedTransaction&) = default;
};

// Why a claimed item gets no other chance in its own batch; `retried_in` 0: it was not told yet.
inline std::string RetriedItemInWords(uint64_t batch, uint64_t item, uint64_t retried_in) {
  if (retried_in != 0) {
    return absl::StrCat("item ", batch, "/", item, " is retried in batch ", retried_in);
  }
  return absl::StrCat("item ", batch, "/", item, " is about to be retried: `muster batch retry ",
                      batch, " --item ", item, "` goes on with it");
}

}  // namespace muster::report
