// SPDX-License-Identifier: Apache-2.0
#include "muster/base/quantity.h"

#include <array>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/decimal.h"

namespace muster::base {
namespace {

struct Unit {
  absl::string_view name;
  int64_t size;
};

constexpr std::array<Unit, 11> kByteUnits = {{{"", 1},
                                              {"B", 1},
                                              {"KiB", int64_t{1} << 10},
                                              {"MiB", int64_t{1} << 20},
                                              {"GiB", int64_t{1} << 30},
                                              {"TiB", int64_t{1} << 40},
                                              {"kB", 1000},
                                              {"KB", 1000},
                                              {"MB", 1'000'000},
                                              {"GB", int64_t{1000} * 1000 * 1000},
                                              {"TB", int64_t{1000} * 1000 * 1000 * 1000}}};

// From large to small, in nanoseconds.
constexpr std::array<Unit, 7> kTimeUnits = {{{"d", int64_t{86400} * 1000 * 1000 * 1000},
                                             {"h", int64_t{3600} * 1000 * 1000 * 1000},
                                             {"m", int64_t{60} * 1000 * 1000 * 1000},
                                             {"s", int64_t{1000} * 1000 * 1000},
                                             {"ms", 1'000'000},
                                             {"us", 1000},
                                             {"ns", 1}}};

// Takes a number and the letters behind it off the front of `text`.
struct Quantity {
  absl::string_view number;
  absl::string_view unit;
};
Quantity TakeQuantity(absl::string_view* text) {
  size_t number = 0;
  while (number < text->size() &&
         !absl::ascii_isalpha(static_cast<unsigned char>((*text)[number]))) {
    ++number;
  }
  size_t end = number;
  while (end < text->size() && absl::ascii_isalpha(static_cast<unsigned char>((*text)[end]))) ++end;
  const Quantity quantity{text->substr(0, number), text->substr(number, end - number)};
  text->remove_prefix(end);
  return quantity;
}

// number × size as a whole number. Decimal keeps it exact and refuses what does not come out even.
absl::StatusOr<int64_t> WholeUnits(absl::string_view number, int64_t size) {
  const std::optional<Decimal> value = Decimal::TryParse(number);
  if (!value || !absl::ascii_isdigit(static_cast<unsigned char>(number[0]))) {
    return absl::InvalidArgumentError("not a plain number before the unit");
  }
  const std::optional<Decimal> product = Decimal::TryMultiply(*value, Decimal::FromInt(size));
  if (!product || *product > Decimal::FromInt(std::numeric_limits<int64_t>::max())) {
    return absl::OutOfRangeError("too large");
  }
  const std::optional<Decimal> whole = product->TryRescale(0);
  if (!whole) return absl::InvalidArgumentError("finer than the smallest unit");
  return static_cast<int64_t>(whole->units());
}

absl::Status Refused(absl::string_view what, absl::string_view text, const absl::Status& why) {
  return absl::Status(
      why.code(), absl::StrCat("'", text.substr(0, 64), "' is not ", what, ": ", why.message()));
}

absl::StatusOr<int64_t> ReadBytes(absl::string_view text) {
  const Quantity quantity = TakeQuantity(&text);
  if (!text.empty()) return absl::InvalidArgumentError("something follows the unit");
  for (const Unit& unit : kByteUnits) {
    if (unit.name == quantity.unit) return WholeUnits(quantity.number, unit.size);
  }
  return absl::InvalidArgumentError("the unit is not one of B, KiB, MiB, GiB, TiB, kB, MB, GB, TB");
}

absl::StatusOr<int64_t> ReadNanoseconds(absl::string_view text) {
  if (text.empty()) return absl::InvalidArgumentError("it is empty");
  Int128 total = 0;
  size_t next_unit = 0;
  while (!text.empty()) {
    const Quantity quantity = TakeQuantity(&text);
    while (next_unit < kTimeUnits.size() && kTimeUnits[next_unit].name != quantity.unit)
      ++next_unit;
    if (next_unit == kTimeUnits.size()) {
      return absl::InvalidArgumentError(
          "it needs units out of d, h, m, s, ms, us, ns, from large to small");
    }
    const absl::StatusOr<int64_t> part = WholeUnits(quantity.number, kTimeUnits[next_unit].size);
    if (!part.ok()) return part.status();
    total += *part;
    ++next_unit;
  }
  if (total > std::numeric_limits<int64_t>::max()) return absl::OutOfRangeError("too large");
  return static_cast<int64_t>(total);
}

}  // namespace

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  absl::StatusOr<int64_t> bytes = ReadBytes(text);
  if (!bytes.ok()) return Refused("a size such as 256KiB", text, bytes.status());
  return bytes;
}

std::string BytesToString(int64_t bytes) {
  absl::string_view name = "B";
  while (bytes != 0 && bytes % 1024 == 0 && name != "TiB") {
    bytes /= 1024;
    name = name == "B" ? "KiB" : name == "KiB" ? "MiB" : name == "MiB" ? "GiB" : "TiB";
  }
  return absl::StrCat(bytes, name);
}

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  if (text == "0") return absl::ZeroDuration();
  const absl::StatusOr<int64_t> nanoseconds = ReadNanoseconds(text);
  if (!nanoseconds.ok()) return Refused("a duration such as 30s", text, nanoseconds.status());
  return absl::Nanoseconds(*nanoseconds);
}

std::string DurationToString(absl::Duration duration) {
  if (duration < absl::ZeroDuration()) return absl::StrCat("-", DurationToString(-duration));
  if (duration == absl::InfiniteDuration()) return "inf";
  std::string text;
  for (const Unit& unit : kTimeUnits) {
    const int64_t count = absl::IDivDuration(duration, absl::Nanoseconds(unit.size), &duration);
    if (count > 0) absl::StrAppend(&text, count, unit.name);
  }
  return text.empty() ? "0s" : text;
}

}  // namespace muster::base
