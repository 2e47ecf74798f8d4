// The retry of rejected transactions: which batch has which of them, so that each is retried once.
//
//   ClaimRejections ──► claim without a batch ──RecordRetry──► claim of a batch
//                             │                                   │
//                             └──── either batch is forgotten: its transactions are free ◄──┘
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::report {

// Bound of one claim, so that its transaction stays short.
inline constexpr int64_t kMaxClaimedRejections = 50'000;
// Lines that a claim may name.
inline constexpr size_t kMaxNamedLines = 1000;
// Retries of a batch that its progress names.
inline constexpr size_t kMaxShownRetries = 100;

// Rejected transactions of a batch that are retried together.
struct RetryClaim {
  int64_t retry = 0;  // its id, which no other claim of any batch has
  int64_t transactions = 0;
  uint64_t retried_in = 0;  // the batch that has them; 0: it was not told yet

  friend bool operator==(const RetryClaim&, const RetryClaim&) = default;
};

struct RetryClaims {
  std::vector<RetryClaim> claims;
  bool more = false;  // without lines: others are left to claim
};

// A claimed transaction.
struct RetriedTransaction {
  uint64_t item = 0;
  int64_t line = 0;
  int64_t retried_line = 0;  // where it begins in the batch that retries it; 0: nowhere

  friend bool operator==(const RetriedTransaction&, const RetriedTransaction&) = default;
};

}  // namespace muster::report
