// SPDX-License-Identifier: Apache-2.0
#include "muster/base/time_zone.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/text.h"

namespace muster::base {
namespace {

// In each edition of tzdata, and in each selection of it.
constexpr char kAnyZone[] = "Europe/Berlin";

constexpr size_t kMaxNameBytes = 64;

// Accepts only names that refer to files of the time zone database and mean the same on each
// machine, so that no caller has a file of the host read: "../../etc/passwd", ":/path".
bool IsZoneName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         absl::ascii_isalpha(static_cast<unsigned char>(name[0])) && name != "localtime" &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '+' || c == '/';
         });
}

// "Europe/Berlin" of "europe/berlin".
std::string Capitalised(absl::string_view name) {
  std::string capitalised = absl::AsciiStrToLower(name);
  bool is_first = true;
  for (char& c : capitalised) {
    if (is_first) c = absl::ascii_toupper(static_cast<unsigned char>(c));
    is_first = c == '/' || c == '_' || c == '-';
  }
  return capitalised;
}

// "Etc/GMT-2" of "UTC+2": the signs of these names are those of POSIX. Empty: `name` is no such
// offset.
std::string NameOfOffset(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "UTC") && !absl::ConsumePrefix(&name, "GMT")) return "";
  const bool is_ahead = absl::ConsumePrefix(&name, "+");
  int hours = 0;
  if ((!is_ahead && !absl::ConsumePrefix(&name, "-")) || !absl::SimpleAtoi(name, &hours)) return "";
  return absl::StrCat("Etc/GMT", is_ahead ? "-" : "+", hours);
}

// What `name`, which no zone has, is probably meant to be.
std::string Hint(absl::string_view name) {
  absl::TimeZone zone;
  const std::string offset = NameOfOffset(name);
  if (!offset.empty() && absl::LoadTimeZone(offset, &zone)) {
    return absl::StrCat("; there the name of this one is ", Quoted(offset),
                        ", with the other sign");
  }
  for (const std::string& other : {Capitalised(name), absl::AsciiStrToUpper(name)}) {
    if (absl::LoadTimeZone(other, &zone))
      return absl::StrCat("; did you mean ", Quoted(other), "?");
  }
  return "";
}

}  // namespace

absl::StatusOr<absl::TimeZone> FindTimeZone(absl::string_view name) {
  absl::TimeZone zone;
  std::string hint;
  if (IsZoneName(name)) {
    if (absl::LoadTimeZone(std::string(name), &zone)) return zone;
    if (!absl::LoadTimeZone(kAnyZone, &zone)) {
      return absl::FailedPreconditionError(
          absl::StrCat(Quoted(name),
                       " cannot be looked up: this machine has no time zone data; "
                       "install its package tzdata, or use UTC"));
    }
    hint = Hint(name);
  }
  return absl::InvalidArgumentError(absl::StrCat("no time zone ", Quoted(name),
                                                 ": its name is one such as ", kAnyZone,
                                                 ", of the system's tzdata", hint));
}

}  // namespace muster::base
