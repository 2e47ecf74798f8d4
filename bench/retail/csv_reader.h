// SPDX-License-Identifier: Apache-2.0

// A hand-written reader of CSV (RFC 4180), as fast as SSE2 allows: fields are views into the text.
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>

#include "absl/strings/string_view.h"

namespace bench {

inline constexpr size_t kMaxFields = 64;

// Prints `what` and ends the program: half a result is useless for a measurement.
[[noreturn]] void Die(absl::string_view what);

inline constexpr ptrdiff_t kBlock = 64;

// Bit i is set where byte i of the block is a comma or a line feed.
inline uint64_t DelimitersIn(const char* block) {
  uint64_t found = 0;
#ifdef __SSE2__
  for (int i = 0; i < kBlock; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
    const __m128i equal = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(',')),
                                       _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')));
    found |= uint64_t{static_cast<uint16_t>(_mm_movemask_epi8(equal))} << i;
  }
#else
  for (int i = 0; i < kBlock; ++i) {
    found |= uint64_t{block[i] == ',' || block[i] == '\n'} << i;
  }
#endif
  return found;
}

// Finds commas and line feeds, 64 bytes at a time.
class DelimiterFinder {
 public:
  explicit DelimiterFinder(absl::string_view text)
      : block_(text.data()), end_(text.data() + text.size()) {
    found_ = Scan();
  }

  // Returns the first comma or line feed at or after `at`, or the end of the text. `at` never goes
  // back.
  const char* Find(const char* at) {
    while (at - block_ >= kBlock || (found_ >> (at - block_)) == 0) {
      if (end_ - block_ <= kBlock) return end_;
      block_ += kBlock;
      at = std::max(at, block_);
      found_ = Scan();
    }
    return at + std::countr_zero(found_ >> (at - block_));
  }

 private:
  uint64_t Scan() const {
    if (end_ - block_ >= kBlock) return DelimitersIn(block_);
    std::array<char, kBlock> rest{};
    std::copy(block_, end_, rest.begin());
    return DelimitersIn(rest.data());
  }

  const char* block_;
  const char* const end_;
  uint64_t found_;  // bit i: block_[i] is a comma or a line feed
};

// Cuts a text into records and fields. It owns the fields that it has unescaped.
class CsvReader {
 public:
  explicit CsvReader(absl::string_view text)
      : at_(text.data()), end_(at_ + text.size()), delimiters_(text) {}

  // Reads the next record's fields and returns their number; 0 at the end of the text. Skips blank
  // lines.
  size_t Next(std::array<absl::string_view, kMaxFields>* fields) {
    while (at_ != end_ && (*at_ == '\n' || *at_ == '\r')) ++at_;
    if (at_ == end_) return 0;
    for (size_t count = 1; count <= kMaxFields; ++count) {
      (*fields)[count - 1] = *at_ == '"' ? QuotedField() : PlainField();
      if (at_ == end_) return count;
      if (*at_++ == '\n') return count;
      if (at_ == end_) Die("the last record ends in a comma");
    }
    Die("too many fields");
  }

 private:
  absl::string_view PlainField() {
    const char* const begin = at_;
    at_ = delimiters_.Find(at_);
    const bool has_return = at_ != begin && at_[-1] == '\r' && (at_ == end_ || *at_ == '\n');
    return {begin, static_cast<size_t>(at_ - begin) - (has_return ? 1 : 0)};
  }

  absl::string_view QuotedField() {
    const char* const begin = ++at_;
    bool has_quotes = false;
    while (true) {
      const auto* const quote =
          static_cast<const char*>(std::memchr(at_, '"', static_cast<size_t>(end_ - at_)));
      if (quote == nullptr) Die("a quote is never closed");
      at_ = quote + 1;
      if (at_ == end_ || *at_ != '"') break;
      has_quotes = true;
      ++at_;
    }
    const absl::string_view field(begin, static_cast<size_t>(at_ - 1 - begin));
    if (at_ != end_ && *at_ == '\r') ++at_;
    if (at_ != end_ && *at_ != ',' && *at_ != '\n') Die("text after a closing quote");
    return has_quotes ? Unescaped(field) : field;
  }

  absl::string_view Unescaped(absl::string_view field) {
    std::string& text = unescaped_.emplace_back();
    for (size_t i = 0; i < field.size(); ++i) {
      text += field[i];
      if (field[i] == '"') ++i;
    }
    return text;
  }

  const char* at_;
  const char* const end_;
  DelimiterFinder delimiters_;
  std::deque<std::string> unescaped_;
};

}  // namespace bench
