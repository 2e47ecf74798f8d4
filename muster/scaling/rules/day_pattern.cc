#include "muster/scaling/rules/day_pattern.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster::scaling::rules {
namespace {

// The shortest month has 28 days.
constexpr int kMaxDaysOfMonth = 28;

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

std::optional<size_t> ParseWeekday(absl::string_view text) {
  constexpr std::array<absl::string_view, 7> kNames = {
      "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (text == kNames[i] || text == kNames[i].substr(0, 3)) return i;
  }
  return std::nullopt;
}

// A number of just `digits` digits.
std::optional<int> ParsePart(absl::string_view text, size_t digits) {
  int number = 0;
  if (text.size() != digits) return std::nullopt;
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return std::nullopt;
    number = 10 * number + (c - '0');
  }
  return number;
}

std::optional<int> ParseCount(absl::string_view text) {
  const std::optional<int> count = ParsePart(text, text.size() == 1 ? 1 : 2);
  return count && *count >= 1 && *count <= kMaxDaysOfMonth ? count : std::nullopt;
}

std::optional<DayPattern> WeekdaysOf(absl::string_view text) {
  const std::vector<absl::string_view> ends = absl::StrSplit(text, absl::MaxSplits('-', 1));
  const std::optional<size_t> first = ParseWeekday(ends.front());
  const std::optional<size_t> last = ParseWeekday(ends.back());
  if (!first || !last) return std::nullopt;
  Weekdays weekdays;
  for (size_t at = *first;; at = (at + 1) % 7) {
    weekdays.days.set(at);
    if (at == *last) return weekdays;
  }
}

std::optional<DayPattern> OfMonth(absl::string_view text) {
  if (!absl::ConsumeSuffix(&text, "-of-month")) return std::nullopt;
  const bool is_first = absl::ConsumePrefix(&text, "first-");
  if (!is_first && !absl::ConsumePrefix(&text, "last-")) return std::nullopt;
  const std::optional<int> count = ParseCount(text);
  if (!count) return std::nullopt;
  return is_first ? DayPattern(FirstOfMonth{*count}) : DayPattern(LastOfMonth{*count});
}

// absl makes 1 March of 29 February where there is none.
bool Exists(absl::CivilDay day, int month, int of_month) {
  return day.month() == month && day.day() == of_month;
}

std::optional<DayPattern> DateOf(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  if (parts.size() != 2 && parts.size() != 3) return std::nullopt;
  const std::optional<int> day = ParsePart(parts.back(), 2);
  const std::optional<int> month = ParsePart(parts[parts.size() - 2], 2);
  const std::optional<int> year = parts.size() == 3 ? ParsePart(parts[0], 4) : 2000;  // a leap year
  if (!day || !month || !year) return std::nullopt;
  const absl::CivilDay date(*year, *month, *day);
  if (!Exists(date, *month, *day)) return std::nullopt;
  return parts.size() == 3 ? DayPattern(Date{date}) : DayPattern(YearlyDate{*month, *day});
}

}  // namespace

absl::StatusOr<DayPattern> ParseDayPattern(absl::string_view text) {
  for (const auto read : {WeekdaysOf, OfMonth, DateOf}) {
    if (const std::optional<DayPattern> pattern = read(text)) return *pattern;
  }
  return absl::InvalidArgumentError(
      "a weekday or a range of them (mon-fri), first-N-of-month, last-N-of-month with N up to 28, "
      "a date (2026-12-24), or one of each year (12-24)");
}

bool IsOn(const DayPattern& pattern, absl::CivilDay day) {
  return std::visit(
      Overloaded{
          [&](const Weekdays& on) { return on.days[static_cast<size_t>(absl::GetWeekday(day))]; },
          [&](const FirstOfMonth& on) { return day.day() <= on.count; },
          [&](const LastOfMonth& on) {
            const absl::CivilDay next_month(absl::CivilMonth(day) + 1);
            return next_month - day <= on.count;
          },
          [&](const Date& on) { return on.day == day; },
          [&](const YearlyDate& on) { return on.month == day.month() && on.day == day.day(); }},
      pattern);
}

}  // namespace muster::scaling::rules
