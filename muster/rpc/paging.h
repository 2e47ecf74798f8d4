// SPDX-License-Identifier: Apache-2.0

// What the RPCs that answer a list page by page have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace muster::rpc {

// Entries of a page if the request names no number, and the most that it may name.
inline constexpr int kDefaultPageSize = 100;
inline constexpr int kMaxPageSize = 1000;
// The bytes of one answer, below gRPC's limit by enough for the rest of the message.
inline constexpr size_t kMaxAnswerBytes = size_t{3} << 20;

// How many entries the page has; nullopt: `asked` is not within 0 to kMaxPageSize.
inline std::optional<int> PageSize(int32_t asked) {
  if (asked < 0 || asked > kMaxPageSize) return std::nullopt;
  return asked == 0 ? kDefaultPageSize : asked;
}

// Counts the entries of an answer until it is full.
class AnswerRoom {
 public:
  // Whether `entry` fits; the first one always does.
  template <typename Entry>
  bool Take(const Entry& entry) {
    bytes_ += entry.ByteSizeLong();
    return std::exchange(first_, false) || bytes_ <= kMaxAnswerBytes;
  }

 private:
  size_t bytes_ = 0;
  bool first_ = true;
};

}  // namespace muster::rpc
