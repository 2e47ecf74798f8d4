#include "examples/retail/timestamp.h"

#include <array>

namespace retail {
namespace {

constexpr absl::string_view kShape = "dddd-dd-dd dd:dd:dd";

bool HasShape(absl::string_view text) {
  if (text.size() != kShape.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = '0' <= text[i] && text[i] <= '9';
    if (kShape[i] == 'd' ? !is_digit : text[i] != kShape[i]) return false;
  }
  return true;
}

int TwoDigits(absl::string_view text, size_t at) {
  return (text[at] - '0') * 10 + (text[at + 1] - '0');
}

bool IsLeapYear(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int DaysIn(int month, int year) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && IsLeapYear(year) ? 29 : kDays[static_cast<size_t>(month - 1)];
}

}  // namespace

bool IsTimestamp(absl::string_view text) {
  if (!HasShape(text)) return false;
  const int year = TwoDigits(text, 0) * 100 + TwoDigits(text, 2);
  const int month = TwoDigits(text, 5);
  const int day = TwoDigits(text, 8);
  return 1 <= month && month <= 12 && 1 <= day && day <= DaysIn(month, year) &&
         TwoDigits(text, 11) < 24 && TwoDigits(text, 14) < 60 && TwoDigits(text, 17) < 60;
}

}  // namespace retail
