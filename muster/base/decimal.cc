// SPDX-License-Identifier: Apache-2.0
#include "muster/base/decimal.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::base {
namespace {

// 10^0 … 10^38.
constexpr std::array<Int128, Decimal::kMaxDigits + 1> kPowersOfTen = [] {
  std::array<Int128, Decimal::kMaxDigits + 1> powers{};
  powers[0] = 1;
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}();

// So many digits always fit 64 bits, where arithmetic is cheap.
constexpr size_t kDigitsIn64Bits = 18;

bool Fits64(Int128 value) { return value == static_cast<int64_t>(value); }

Uint128 Magnitude(Int128 value) {
  return value < 0 ? -static_cast<Uint128>(value) : static_cast<Uint128>(value);
}

// Reads digits into `value` until something else comes; returns how many it read. `value` is right
// as long as it has at most 38 digits; `*significant` counts them, without leading zeros.
size_t ReadDigits(absl::string_view text, Uint128* value, int* significant) {
  size_t i = 0;
  for (; i < text.size() && '0' <= text[i] && text[i] <= '9'; ++i) {
    if (*significant > 0 || text[i] != '0') ++*significant;
    *value = *value * 10 + static_cast<unsigned>(text[i] - '0');
  }
  return i;
}

struct Parsed {
  Uint128 magnitude = 0;
  bool negative = false;
  bool well_formed = false;
  int significant = 0;
  size_t decimals = 0;
};

Parsed ReadNumber(absl::string_view text) {
  Parsed result;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    result.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const size_t whole = ReadDigits(text, &result.magnitude, &result.significant);
  text.remove_prefix(whole);
  if (text.empty()) {
    result.well_formed = whole > 0;
    return result;
  }
  if (text[0] != '.') return result;
  text.remove_prefix(1);
  result.decimals = ReadDigits(text, &result.magnitude, &result.significant);
  result.well_formed = result.decimals > 0 && result.decimals == text.size();
  return result;
}

// The short numbers that nearly all input consists of, in 64-bit arithmetic and one pass. False:
// not such a number, or not a number at all.
bool ReadShortNumber(absl::string_view text, int64_t* units, int* scale) {
  const char* p = text.data();
  const char* const end = p + text.size();
  const bool negative = p != end && *p == '-';
  if (negative) ++p;
  if (p == end || static_cast<size_t>(end - p) > kDigitsIn64Bits + 1) return false;
  const char* point = nullptr;
  uint64_t value = 0;  // holds the 19 digits that may be met before they are refused
  for (const char* q = p; q != end; ++q) {
    const unsigned digit = static_cast<unsigned char>(*q) - static_cast<unsigned>('0');
    if (digit < 10) {
      value = value * 10 + digit;
    } else if (*q == '.' && point == nullptr) {
      point = q;
    } else {
      return false;
    }
  }
  const bool is_19_digits = point == nullptr && static_cast<size_t>(end - p) > kDigitsIn64Bits;
  if (is_19_digits || point == end - 1) return false;
  *scale = point == nullptr ? 0 : static_cast<int>(end - 1 - point);
  *units = negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
  return true;
}

std::string Digits(Uint128 value) {
  // Dividing 128 bits digit by digit is slow.
  constexpr uint64_t kChunk = 1'000'000'000'000'000'000;
  if (value < kChunk) return absl::StrCat(static_cast<uint64_t>(value));
  const std::string last = absl::StrCat(static_cast<uint64_t>(value % kChunk));
  return absl::StrCat(Digits(value / kChunk), std::string(kDigitsIn64Bits - last.size(), '0'),
                      last);
}

absl::Status TooManyDigits(absl::string_view what) {
  return absl::OutOfRangeError(absl::StrCat(what, " needs more than ", Decimal::kMaxDigits,
                                            " digits or ", Decimal::kMaxScale, " decimals"));
}

}  // namespace

std::optional<Decimal> Decimal::FromUnits(Int128 units, int scale) {
  if (!Fits(units) || scale < 0 || scale > kMaxScale) return std::nullopt;
  return Decimal(units, scale);
}

std::optional<Decimal> Decimal::TryParse(absl::string_view text) {
  int64_t units;
  int scale;
  if (ReadShortNumber(text, &units, &scale)) return Decimal(units, scale);
  const Parsed number = ReadNumber(text);
  if (!number.well_formed || number.significant > kMaxDigits || number.decimals > kMaxScale) {
    return std::nullopt;
  }
  const Int128 magnitude = static_cast<Int128>(number.magnitude);
  return Decimal(number.negative ? -magnitude : magnitude, static_cast<int>(number.decimals));
}

namespace {

// Far beyond what any value reaches; so sums of scales do not overflow.
constexpr int kMaxExponent = 9999;

// "E+2" as 2. nullopt: it is no exponent.
std::optional<int> ReadExponent(absl::string_view text) {
  int exponent = 0;
  text.remove_prefix(1);
  const bool is_signed = !text.empty() && (text[0] == '+' || text[0] == '-');
  const absl::string_view digits = text.substr(is_signed ? 1 : 0);
  if (digits.empty() || digits[0] < '0' || digits[0] > '9') return std::nullopt;
  if (!absl::SimpleAtoi(digits, &exponent)) return std::nullopt;
  if (text[0] == '-') exponent = -exponent;
  return std::clamp(exponent, -kMaxExponent, kMaxExponent);
}

// Writes `mantissa`, of which all but a sign and a point are digits, without an exponent.
std::string Spell(absl::string_view mantissa, int exponent) {
  std::string sign, digits;
  int decimals = -exponent;
  bool behind_point = false;
  for (const char c : mantissa) {
    if (c == '-' || c == '+') {
      sign = std::string(1, c);
    } else if (c == '.') {
      behind_point = true;
    } else {
      digits += c;
      decimals += behind_point ? 1 : 0;
    }
  }
  const bool is_zero = digits.find_first_not_of('0') == std::string::npos;
  if (is_zero) decimals = std::clamp(decimals, 0, Decimal::kMaxScale);
  for (; decimals > Decimal::kMaxScale && digits.size() > 1 && digits.back() == '0'; --decimals) {
    digits.pop_back();
  }
  if (decimals < 0) digits.append(static_cast<size_t>(-decimals), '0');
  if (decimals <= 0) return absl::StrCat(sign, digits);
  const auto places = static_cast<size_t>(decimals);
  if (digits.size() < places) digits.insert(0, places - digits.size(), '0');
  return absl::StrCat(sign, digits.substr(0, digits.size() - places), ".",
                      digits.substr(digits.size() - places));
}

}  // namespace

absl::StatusOr<Decimal> Decimal::ParseWithExponent(absl::string_view text) {
  if (const std::optional<Decimal> value = TryParse(text)) return *value;
  const size_t mark = std::min(text.find_first_of("eE"), text.size());
  const absl::string_view mantissa = text.substr(0, mark);
  const std::optional<int> exponent =
      mark == text.size() ? std::optional<int>(0) : ReadExponent(text.substr(mark));
  if (!exponent.has_value() || !ReadNumber(mantissa).well_formed) return Parse(text);
  const std::string spelled = Spell(mantissa, *exponent);
  if (const std::optional<Decimal> value = TryParse(spelled)) return *value;
  const bool is_long = ReadNumber(spelled).decimals > kMaxScale;
  const std::string shown = absl::StrCat("'", text.substr(0, 64), text.size() > 64 ? "…" : "", "'");
  if (!is_long) {
    return absl::OutOfRangeError(absl::StrCat(shown, " has more than ", kMaxDigits, " digits"));
  }
  return absl::InvalidArgumentError(absl::StrCat(shown, " has more than ", kMaxScale, " decimals"));
}

absl::StatusOr<Decimal> Decimal::Parse(absl::string_view text) {
  if (const std::optional<Decimal> value = TryParse(text)) return *value;
  const std::string shown = absl::StrCat("'", text.substr(0, 64), text.size() > 64 ? "…" : "", "'");
  const Parsed number = ReadNumber(text);
  if (!number.well_formed) {
    return absl::InvalidArgumentError(absl::StrCat(shown, " is not a decimal number"));
  }
  if (number.decimals > kMaxScale) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, " has more than ", kMaxScale, " decimals"));
  }
  return absl::OutOfRangeError(absl::StrCat(shown, " has more than ", kMaxDigits, " digits"));
}

// Works on magnitudes because clang turns the signed check into a call of __muloti4, which libgcc
// does not have.
std::optional<Int128> Decimal::MultiplyUnits(Int128 a, Int128 b) {
  if (Fits64(a) && Fits64(b)) {
    const Int128 product = a * b;
    return Fits(product) ? std::optional<Int128>(product) : std::nullopt;
  }
  Uint128 product;
  if (__builtin_mul_overflow(Magnitude(a), Magnitude(b), &product) ||
      product > static_cast<Uint128>(kMaxUnits)) {
    return std::nullopt;
  }
  const Int128 magnitude = static_cast<Int128>(product);
  return (a < 0) != (b < 0) ? -magnitude : magnitude;
}

std::optional<Decimal> Decimal::AddAtLargerScale(const Decimal& a, const Decimal& b) {
  const int scale = std::max(a.scale_, b.scale_);
  const std::optional<Decimal> left = a.TryRescale(scale);
  const std::optional<Decimal> right = b.TryRescale(scale);
  return left && right ? TryAdd(*left, *right) : std::nullopt;
}

std::optional<Decimal> Decimal::AddAcrossScales(const Decimal& a, const Decimal& b) {
  if (std::optional<Decimal> sum = AddAtLargerScale(a, b)) return sum;
  return AddAtLargerScale(a.Trimmed(), b.Trimmed());
}

absl::StatusOr<Decimal> Decimal::Add(const Decimal& a, const Decimal& b) {
  if (const std::optional<Decimal> sum = TryAdd(a, b)) return *sum;
  return TooManyDigits(absl::StrCat("the sum of ", a.ToString(), " and ", b.ToString()));
}

std::optional<Decimal> Decimal::TryMultiply(const Decimal& a, const Decimal& b) {
  const std::optional<Int128> units = MultiplyUnits(a.units_, b.units_);
  const int scale = a.scale_ + b.scale_;
  if (units && scale <= kMaxScale) return Decimal(*units, scale);
  if (units) {
    // More than 18 decimals are no loss if the last ones are zeros.
    const Decimal trimmed = Decimal(*units, scale).Trimmed();
    return trimmed.scale_ <= kMaxScale ? std::optional<Decimal>(trimmed) : std::nullopt;
  }
  const Decimal short_a = a.Trimmed();
  const Decimal short_b = b.Trimmed();
  if (short_a.scale_ == a.scale_ && short_b.scale_ == b.scale_) return std::nullopt;
  return TryMultiply(short_a, short_b);
}

absl::StatusOr<Decimal> Decimal::Multiply(const Decimal& a, const Decimal& b) {
  if (const std::optional<Decimal> product = TryMultiply(a, b)) return *product;
  return TooManyDigits(absl::StrCat("the product of ", a.ToString(), " and ", b.ToString()));
}

std::optional<Decimal> Decimal::ChangeScale(int scale) const {
  if (scale < 0 || scale > kMaxScale) return std::nullopt;
  if (scale > scale_) {
    int64_t short_units;
    if (Fits64(units_) && scale - scale_ <= static_cast<int>(kDigitsIn64Bits) &&
        !__builtin_mul_overflow(static_cast<int64_t>(units_),
                                static_cast<int64_t>(kPowersOfTen[scale - scale_]), &short_units)) {
      return Decimal(short_units, scale);
    }
    const std::optional<Int128> units = MultiplyUnits(units_, kPowersOfTen[scale - scale_]);
    return units ? FromUnits(*units, scale) : std::nullopt;
  }
  const Int128 divisor = kPowersOfTen[scale_ - scale];
  if (units_ % divisor != 0) return std::nullopt;
  return Decimal(units_ / divisor, scale);
}

absl::StatusOr<Decimal> Decimal::Rescale(int scale) const {
  if (const std::optional<Decimal> value = TryRescale(scale)) return *value;
  if (scale < 0 || scale > kMaxScale) {
    return absl::InvalidArgumentError(absl::StrCat("a scale is 0 to ", kMaxScale, ", not ", scale));
  }
  if (scale < scale_) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToString(), " needs more than ", scale, " decimals"));
  }
  return TooManyDigits(absl::StrCat(ToString(), " with ", scale, " decimals"));
}

Decimal Decimal::Trimmed() const {
  Int128 units = units_;
  int scale = scale_;
  while (scale > 0 && units % 10 == 0) {
    units /= 10;
    --scale;
  }
  return Decimal(units, scale);
}

std::string Decimal::ToString() const {
  std::string digits = Digits(Magnitude(units_));
  const size_t decimals = static_cast<size_t>(scale_);
  if (digits.size() <= decimals) digits.insert(0, decimals + 1 - digits.size(), '0');
  if (decimals > 0) digits.insert(digits.size() - decimals, 1, '.');
  return units_ < 0 ? absl::StrCat("-", digits) : digits;
}

std::strong_ordering operator<=>(const Decimal& a, const Decimal& b) {
  if (a.scale_ > b.scale_) return 0 <=> (b <=> a);
  const std::optional<Int128> units =
      Decimal::MultiplyUnits(a.units_, kPowersOfTen[b.scale_ - a.scale_]);
  if (units) return *units <=> b.units_;
  // `a` at b's scale has more digits than any value has, so its sign decides.
  return a.units_ < 0 ? std::strong_ordering::less : std::strong_ordering::greater;
}

std::ostream& operator<<(std::ostream& out, const Decimal& value) {
  return out << value.ToString();
}

}  // namespace muster::base
