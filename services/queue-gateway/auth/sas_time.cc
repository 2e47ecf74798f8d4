// SPDX-License-Identifier: Apache-2.0

// Digit by digit: Abseil's parser takes more than clients may send, "infinite-future" for one.

#include "services/queue-gateway/auth/sas_time.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "absl/time/civil_time.h"

namespace muster::queue_gateway::auth {

namespace {

// Takes `digits` digits from the front of `*text` as a number.
bool ConsumeNumber(absl::string_view* text, size_t digits, int* number) {
  if (text->size() < digits) return false;
  *number = 0;
  for (size_t i = 0; i < digits; ++i) {
    const char c = (*text)[i];
    if (!absl::ascii_isdigit(c)) return false;
    *number = *number * 10 + (c - '0');
  }
  text->remove_prefix(digits);
  return true;
}

bool ConsumeDay(absl::string_view* text, absl::CivilDay* day) {
  int year = 0;
  int month = 0;
  int of_month = 0;
  if (!ConsumeNumber(text, 4, &year) || !absl::ConsumePrefix(text, "-") ||
      !ConsumeNumber(text, 2, &month) || !absl::ConsumePrefix(text, "-") ||
      !ConsumeNumber(text, 2, &of_month)) {
    return false;
  }
  *day = absl::CivilDay(year, month, of_month);
  // The constructor makes March 3rd of February 31st.
  return day->year() == year && day->month() == month && day->day() == of_month;
}

bool ConsumeFraction(absl::string_view* text, absl::Duration* fraction) {
  constexpr size_t kMaxDigits = 9;
  *fraction = absl::ZeroDuration();
  if (!absl::ConsumePrefix(text, ".")) return true;
  absl::Duration unit = absl::Seconds(1);
  size_t digits = 0;
  for (; !text->empty() && absl::ascii_isdigit(text->front()); ++digits) {
    if (digits == kMaxDigits) return false;
    unit /= 10;
    *fraction += unit * (text->front() - '0');
    text->remove_prefix(1);
  }
  return digits > 0;
}

// hh:mm, or hh:mm:ss with a fraction.
bool ConsumeTimeOfDay(absl::string_view* text, absl::Duration* time) {
  int hour = 0;
  int minute = 0;
  int second = 0;
  absl::Duration fraction;
  if (!ConsumeNumber(text, 2, &hour) || !absl::ConsumePrefix(text, ":") ||
      !ConsumeNumber(text, 2, &minute) || hour > 23 || minute > 59) {
    return false;
  }
  if (absl::ConsumePrefix(text, ":")) {
    if (!ConsumeNumber(text, 2, &second) || second > 59 || !ConsumeFraction(text, &fraction)) {
      return false;
    }
  }
  *time = absl::Hours(hour) + absl::Minutes(minute) + absl::Seconds(second) + fraction;
  return true;
}

bool ConsumeOffset(absl::string_view* text, absl::Duration* offset) {
  *offset = absl::ZeroDuration();
  if (absl::ConsumePrefix(text, "Z")) return true;
  const int sign = absl::ConsumePrefix(text, "+") ? 1 : -1;
  if (sign < 0 && !absl::ConsumePrefix(text, "-")) return false;
  int hours = 0;
  int minutes = 0;
  if (!ConsumeNumber(text, 2, &hours) || !absl::ConsumePrefix(text, ":") ||
      !ConsumeNumber(text, 2, &minutes) || hours > 14 || minutes > 59) {
    return false;
  }
  *offset = sign * (absl::Hours(hours) + absl::Minutes(minutes));
  return true;
}

}  // namespace

std::optional<absl::Time> ParseSasTime(absl::string_view text) {
  absl::CivilDay day;
  if (!ConsumeDay(&text, &day)) return std::nullopt;
  const absl::Time midnight = absl::FromCivil(day, absl::UTCTimeZone());
  if (text.empty()) return midnight;
  absl::Duration time;
  absl::Duration offset;
  if (!absl::ConsumePrefix(&text, "T") || !ConsumeTimeOfDay(&text, &time) ||
      !ConsumeOffset(&text, &offset) || !text.empty()) {
    return std::nullopt;
  }
  return midnight + time - offset;
}

}  // namespace muster::queue_gateway::auth
