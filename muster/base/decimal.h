// SPDX-License-Identifier: Apache-2.0

// Decimal: exact decimal numbers, so that the order of additions can never change a total.
// A value is `units` × 10^-scale, with up to 38 digits of which up to 18 are decimals. Nothing is
// ever rounded: what does not fit is an error.
//
// Each operation exists twice. Try… answers std::nullopt and is made for the path that every
// transaction takes; the other form says what was wrong in a status.
#pragma once

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::base {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

// A value type; 1.5 equals 1.50, and each keeps its own number of decimals when shown.
class Decimal {
 public:
  static constexpr int kMaxDigits = 38;  // the most that 128 bits hold
  static constexpr int kMaxScale = 18;

  // 0, without decimals.
  constexpr Decimal() = default;

  static constexpr Decimal FromInt(int64_t value) { return Decimal(value, 0); }

  // nullopt when `units` has more than 38 digits or `scale` is not in 0..18.
  static std::optional<Decimal> FromUnits(Int128 units, int scale);

  // [+-] digits [. digits], or [+-] . digits: "12", "-12.50", "+1", ".5", "007". The decimals that
  // are written, zeros too, make the scale. Refused: nothing, spaces, exponents, thousands
  // separators, "5." and more than 18 decimals (InvalidArgument); more than 38 digits after leading
  // zeros (OutOfRange).
  static absl::StatusOr<Decimal> Parse(absl::string_view text);
  static std::optional<Decimal> TryParse(absl::string_view text);

  // As Parse, and also with an exponent, as programs print numbers: "1E+2", "25e-1", "0E-8". Zeros
  // at the end are left out where there are more than 18 decimals.
  static absl::StatusOr<Decimal> ParseWithExponent(absl::string_view text);

  // The sum has the larger of the two scales. OutOfRange above 38 digits.
  static absl::StatusOr<Decimal> Add(const Decimal& a, const Decimal& b);
  static std::optional<Decimal> TryAdd(const Decimal& a, const Decimal& b) {
    if (a.scale_ != b.scale_) return AddAcrossScales(a, b);
    Int128 units;  // two of 38 digits can pass 127 bits
    if (__builtin_add_overflow(a.units_, b.units_, &units) || !Fits(units)) return std::nullopt;
    return Decimal(units, a.scale_);
  }
  // The same in place, for long sums; false, and no change, above 38 digits.
  bool AddInPlace(const Decimal& value) {
    if (scale_ != value.scale_) return AssignIf(AddAcrossScales(*this, value));
    Int128 units;
    if (__builtin_add_overflow(units_, value.units_, &units) || !Fits(units)) return false;
    units_ = units;
    return true;
  }

  // The scales add up; trailing zeros give way where 18 decimals or 38 digits would be exceeded.
  // OutOfRange when the exact product still does not fit.
  static absl::StatusOr<Decimal> Multiply(const Decimal& a, const Decimal& b);
  static std::optional<Decimal> TryMultiply(const Decimal& a, const Decimal& b);

  // The same value with `scale` decimals. InvalidArgument when it needs more decimals than that, or
  // `scale` is not in 0..18; OutOfRange above 38 digits.
  absl::StatusOr<Decimal> Rescale(int scale) const;
  std::optional<Decimal> TryRescale(int scale) const {
    return scale == scale_ ? *this : ChangeScale(scale);
  }
  // The same in place; false, and no change, when it cannot be.
  bool RescaleInPlace(int scale) { return scale == scale_ || AssignIf(ChangeScale(scale)); }

  // The same value with as few decimals as it needs.
  Decimal Trimmed() const;

  // "-12.50": always a digit before the point, exactly scale() after it, no "-0".
  std::string ToString() const;

  constexpr Int128 units() const { return units_; }
  constexpr int scale() const { return scale_; }
  // Whether the units do.
  constexpr bool FitsInt64() const { return units_ == static_cast<int64_t>(units_); }

  // By value.
  friend std::strong_ordering operator<=>(const Decimal& a, const Decimal& b);
  friend bool operator==(const Decimal& a, const Decimal& b) { return (a <=> b) == 0; }

 private:
  constexpr Decimal(Int128 units, int scale) : units_(units), scale_(scale) {}

  static constexpr Int128 kMaxUnits = [] {
    Int128 nines = 0;
    for (int i = 0; i < kMaxDigits; ++i) nines = nines * 10 + 9;
    return nines;
  }();
  static constexpr bool Fits(Int128 units) { return -kMaxUnits <= units && units <= kMaxUnits; }

  // The product if it has at most 38 digits.
  static std::optional<Int128> MultiplyUnits(Int128 a, Int128 b);
  static std::optional<Decimal> AddAcrossScales(const Decimal& a, const Decimal& b);
  static std::optional<Decimal> AddAtLargerScale(const Decimal& a, const Decimal& b);
  std::optional<Decimal> ChangeScale(int scale) const;
  bool AssignIf(const std::optional<Decimal>& value) {
    if (value) *this = *value;
    return value.has_value();
  }

  Int128 units_ = 0;
  int scale_ = 0;
};

// For the messages of tests.
std::ostream& operator<<(std::ostream& out, const Decimal& value);

}  // namespace muster::base
