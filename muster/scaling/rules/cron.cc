#include "muster/scaling/rules/cron.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "muster/base/nearest_name.h"

namespace muster::scaling::rules {
namespace {

struct CronField {
  absl::string_view name;
  int min;
  int max;
  absl::Span<const absl::string_view> names;  // of `min` and what follows
};

constexpr absl::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                         "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr absl::string_view kWeekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr CronField kFields[] = {{"minute", 0, 59, {}},
                                 {"hour", 0, 23, {}},
                                 {"day of the month", 1, 31, {}},
                                 {"month", 1, 12, kMonths},
                                 {"day of the week", 0, 7, kWeekdays}};

absl::Status BadField(const CronField& field, absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("the ", field.name, " ", base::Quoted(text), " ", why));
}

std::optional<int> ParseDigits(absl::string_view text) {
  int number = 0;
  if (text.empty() || text.size() > 4) return std::nullopt;
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return std::nullopt;
    number = 10 * number + (c - '0');
  }
  return number;
}

std::optional<int> ParseValue(const CronField& field, absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text);
  for (size_t i = 0; i < field.names.size(); ++i) {
    if (lower == field.names[i]) return field.min + static_cast<int>(i);
  }
  const std::optional<int> number = ParseDigits(text);
  return number && *number >= field.min && *number <= field.max ? number : std::nullopt;
}

// One entry of a list: a range of values and a step through it.
struct Stretch {
  int first;
  int last;
  int step = 1;
};

absl::StatusOr<Stretch> ParseStretch(const CronField& field, absl::string_view text) {
  const std::vector<absl::string_view> stepped = absl::StrSplit(text, absl::MaxSplits('/', 1));
  const std::vector<absl::string_view> ends = absl::StrSplit(stepped[0], absl::MaxSplits('-', 1));
  Stretch stretch{field.min, field.max};
  if (stepped[0] != "*") {
    const std::optional<int> first = ParseValue(field, ends[0]);
    const std::optional<int> last = ends.size() == 2 ? ParseValue(field, ends[1]) : first;
    if (!first || !last) {
      return BadField(
          field, text,
          absl::StrCat("is not *, nor made of numbers from ", field.min, " to ", field.max));
    }
    if (*first > *last) return BadField(field, text, "begins after it ends");
    if (stepped.size() == 2 && ends.size() == 1) {
      return BadField(field, text, "has a step without a range");
    }
    stretch = {*first, *last};
  }
  if (stepped.size() == 2) {
    const std::optional<int> step = ParseDigits(stepped[1]);
    if (!step || *step == 0) return BadField(field, text, "has a step that is no number above 0");
    stretch.step = *step;
  }
  return stretch;
}

template <size_t kSize>
absl::Status ParseField(const CronField& field, absl::string_view text, std::bitset<kSize>* out) {
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const absl::StatusOr<Stretch> stretch = ParseStretch(field, part);
    if (!stretch.ok()) return stretch.status();
    for (int at = stretch->first; at <= stretch->last; at += stretch->step) {
      out->set(static_cast<size_t>(at) % kSize);  // the 7th day of the week is the 0th
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool CronFields::IsOn(absl::CivilDay day) const {
  if (!months[static_cast<size_t>(day.month())]) return false;
  // absl counts weekdays from Monday.
  const size_t weekday = (static_cast<size_t>(absl::GetWeekday(day)) + 1) % 7;
  const bool fits_day = days[static_cast<size_t>(day.day())];
  const bool fits_weekday = weekdays[weekday];
  return any_day || any_weekday ? fits_day && fits_weekday : fits_day || fits_weekday;
}

absl::StatusOr<CronFields> ParseCron(absl::string_view text) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (parts.size() != 5) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", parts.size(), " fields, not 5: minute hour day-of-month month day-of-week"));
  }
  CronFields fields;
  absl::Status status = ParseField(kFields[0], parts[0], &fields.minutes);
  if (status.ok()) status = ParseField(kFields[1], parts[1], &fields.hours);
  if (status.ok()) status = ParseField(kFields[2], parts[2], &fields.days);
  if (status.ok()) status = ParseField(kFields[3], parts[3], &fields.months);
  if (status.ok()) status = ParseField(kFields[4], parts[4], &fields.weekdays);
  if (!status.ok()) return status;
  fields.any_day = parts[2][0] == '*';
  fields.any_weekday = parts[4][0] == '*';
  fields.follows_clock = parts[0][0] == '*' || parts[1][0] == '*';
  return fields;
}

}  // namespace muster::scaling::rules
