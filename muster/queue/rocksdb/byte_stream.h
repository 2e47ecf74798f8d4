// Appends and takes fixed-width integers and length-prefixed strings: the alphabet of codec.h.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace muster::queue::rocksdb {

template <typename Int>
void AppendLittle(std::string* out, Int value) {
  auto bits = static_cast<std::make_unsigned_t<Int>>(value);
  for (size_t i = 0; i < sizeof(Int); ++i) out->push_back(static_cast<char>(bits >> (8 * i)));
}

inline void AppendText(std::string* out, absl::string_view text) {
  AppendLittle(out, static_cast<uint32_t>(text.size()));
  out->append(text.data(), text.size());
}

template <typename Int>
Int LoadLittle(const char* from) {
  std::make_unsigned_t<Int> bits = 0;
  for (size_t i = 0; i < sizeof(Int); ++i) {
    bits |= static_cast<std::make_unsigned_t<Int>>(
        static_cast<std::make_unsigned_t<Int>>(static_cast<unsigned char>(from[i])) << (8 * i));
  }
  return static_cast<Int>(bits);
}

// Takes values from the front. Once something was missing, ok() is false and all else is empty.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : rest_(bytes) {}

  template <typename Int>
  Int Take() {
    if (!ok_ || rest_.size() < sizeof(Int)) return Fail<Int>();
    const Int value = LoadLittle<Int>(rest_.data());
    rest_.remove_prefix(sizeof(Int));
    return value;
  }

  std::string TakeText() {
    const auto size = Take<uint32_t>();
    if (!ok_ || rest_.size() < size) return Fail<std::string>();
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }

  bool ok() const { return ok_; }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  template <typename T>
  T Fail() {
    ok_ = false;
    return T();
  }

  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace muster::queue::rocksdb
