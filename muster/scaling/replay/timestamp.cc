// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/timestamp.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/time/civil_time.h"

namespace muster::scaling::replay {
namespace {

constexpr int kNanoDigits = 9;
constexpr int kMostSecondDigits = 12;  // some 30,000 years

// Reads a text from left to right. After a failure its position is undefined.
class TimestampScanner {
 public:
  explicit TimestampScanner(absl::string_view text) : rest_(text) {}

  bool AtEnd() const { return rest_.empty(); }
  bool NextIsDigit() const { return !rest_.empty() && absl::ascii_isdigit(rest_[0]); }

  bool Take(char wanted) {
    if (rest_.empty() || rest_[0] != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Takes exactly `digits` digits.
  bool TakeNumber(int digits, int* number) {
    *number = 0;
    for (int i = 0; i < digits; ++i) {
      if (!NextIsDigit()) return false;
      *number = *number * 10 + (rest_[0] - '0');
      rest_.remove_prefix(1);
    }
    return true;
  }

  // ".25" as nanoseconds; none is 0.
  bool TakeFraction(int64_t* nanos) {
    *nanos = 0;
    if (!Take('.')) return true;
    if (!NextIsDigit()) return false;
    for (int digit = 0; digit < kNanoDigits; ++digit) {
      *nanos *= 10;
      if (!NextIsDigit()) continue;
      *nanos += rest_[0] - '0';
      rest_.remove_prefix(1);
    }
    while (NextIsDigit()) rest_.remove_prefix(1);
    return true;
  }

  bool TakeWhole(int64_t* number) {
    int digits = 0;
    for (*number = 0; NextIsDigit(); rest_.remove_prefix(1)) {
      if (++digits > kMostSecondDigits) return false;
      *number = *number * 10 + (rest_[0] - '0');
    }
    return digits > 0;
  }

 private:
  absl::string_view rest_;
};

std::optional<absl::Time> ParseSeconds(absl::string_view text) {
  TimestampScanner scanner(text);
  int64_t seconds;
  int64_t nanos;
  if (!scanner.TakeWhole(&seconds) || !scanner.TakeFraction(&nanos) || !scanner.AtEnd()) {
    return std::nullopt;
  }
  return absl::FromUnixSeconds(seconds) + absl::Nanoseconds(nanos);
}

bool TakeDate(TimestampScanner* scanner, absl::CivilDay* day) {
  int year;
  int month;
  int of_month;
  if (!scanner->TakeNumber(4, &year) || !scanner->Take('-') || !scanner->TakeNumber(2, &month) ||
      !scanner->Take('-') || !scanner->TakeNumber(2, &of_month)) {
    return false;
  }
  *day = absl::CivilDay(year, month, of_month);
  return day->month() == month &&
         day->day() == of_month;  // CivilDay rolls over for days that do not exist
}

bool TakeTimeOfDay(TimestampScanner* scanner, absl::Duration* since_midnight) {
  int hour;
  int minute;
  int second = 0;
  int64_t nanos = 0;
  if (!scanner->TakeNumber(2, &hour) || !scanner->Take(':') || !scanner->TakeNumber(2, &minute)) {
    return false;
  }
  if (scanner->Take(':') && (!scanner->TakeNumber(2, &second) || !scanner->TakeFraction(&nanos))) {
    return false;
  }
  *since_midnight =
      absl::Hours(hour) + absl::Minutes(minute) + absl::Seconds(second) + absl::Nanoseconds(nanos);
  return hour < 24 && minute < 60 && second <= 60;  // 60: a leap second
}

bool TakeZone(TimestampScanner* scanner, absl::Duration* east) {
  *east = absl::ZeroDuration();
  if (scanner->AtEnd() || scanner->Take('Z') || scanner->Take('z')) return true;
  const bool west = scanner->Take('-');
  if (!west && !scanner->Take('+')) return false;
  int hours;
  int minutes = 0;
  if (!scanner->TakeNumber(2, &hours)) return false;
  const bool colon = scanner->Take(':');
  if ((colon || !scanner->AtEnd()) && !scanner->TakeNumber(2, &minutes)) return false;
  *east = absl::Hours(hours) + absl::Minutes(minutes);
  if (west) *east = -*east;
  return hours < 24 && minutes < 60;
}

std::optional<absl::Time> ParseIso(absl::string_view text) {
  TimestampScanner scanner(text);
  absl::CivilDay day;
  absl::Duration since_midnight;
  absl::Duration east;
  if (!TakeDate(&scanner, &day)) return std::nullopt;
  if (!scanner.AtEnd()) {
    if (!scanner.Take('T') && !scanner.Take('t') && !scanner.Take(' ')) return std::nullopt;
    if (!TakeTimeOfDay(&scanner, &since_midnight) || !TakeZone(&scanner, &east)) {
      return std::nullopt;
    }
  }
  if (!scanner.AtEnd()) return std::nullopt;
  return absl::FromCivil(day, absl::UTCTimeZone()) + since_midnight - east;
}

}  // namespace

std::optional<absl::Time> ParseTimestamp(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  return absl::StrContains(text, '-') ? ParseIso(text) : ParseSeconds(text);
}

}  // namespace muster::scaling::replay
