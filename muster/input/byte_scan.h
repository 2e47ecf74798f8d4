// SPDX-License-Identifier: Apache-2.0

// ByteScan: finds the few bytes that give a text its structure, 64 bytes at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/numeric/bits.h"
#include "absl/strings/string_view.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace muster::input {

// Visits in order each position of `text` that holds one of N bytes. Not thread-safe.
template <size_t N>
class ByteScan {
 public:
  static constexpr size_t kEnd = ~size_t{0};

  ByteScan(absl::string_view text, std::array<char, N> wanted) : text_(text), wanted_(wanted) {
    Load(0);
  }

  // The next position, or kEnd.
  size_t Next() {
    while (mask_ == 0) {
      if (text_.size() - block_ <= kBlock) return kEnd;
      Load(block_ + kBlock);
    }
    const size_t at = block_ + static_cast<size_t>(absl::countr_zero(mask_));
    mask_ &= mask_ - 1;
    return at;
  }

  // Continues at `position` (at most the text's size), forwards or backwards.
  void Seek(size_t position) {
    Load(position / kBlock * kBlock);
    mask_ &= ~uint64_t{0} << (position % kBlock);
  }

 private:
  static constexpr size_t kBlock = 64;

  void Load(size_t block) {
    block_ = block;
    const size_t left = text_.size() - block;
    if (left >= kBlock) {
      mask_ = Mask(text_.data() + block);
    } else if (left == 0) {
      mask_ = 0;
    } else {
      char last[kBlock] = {};
      std::memcpy(last, text_.data() + block, left);
      mask_ = Mask(last) & ((uint64_t{1} << left) - 1);
    }
  }

  // Bit i is set when bytes[i] is wanted.
  uint64_t Mask(const char* bytes) const {
    uint64_t mask = 0;
#if defined(__SSE2__)
    for (size_t lane = 0; lane < 4; ++lane) {
      const __m128i chunk = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * lane));
      __m128i hits = _mm_setzero_si128();
      for (char c : wanted_) hits = _mm_or_si128(hits, _mm_cmpeq_epi8(chunk, _mm_set1_epi8(c)));
      mask |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(hits))) << (16 * lane);
    }
#else
    for (size_t i = 0; i < kBlock; ++i) {
      bool hit = false;
      for (char c : wanted_) hit |= bytes[i] == c;
      mask |= static_cast<uint64_t>(hit) << i;
    }
#endif
    return mask;
  }

  const absl::string_view text_;
  const std::array<char, N> wanted_;
  size_t block_ = 0;   // where the current block begins
  uint64_t mask_ = 0;  // its wanted positions that were not visited yet
};

// At the speed of reading it.
bool IsAscii(absl::string_view text);

}  // namespace muster::input
