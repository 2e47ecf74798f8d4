#include "muster/base/time_zone.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
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

}  // namespace

absl::StatusOr<absl::TimeZone> FindTimeZone(absl::string_view name) {
  absl::TimeZone zone;
  if (IsZoneName(name)) {
    if (absl::LoadTimeZone(std::string(name), &zone)) return zone;
    if (!absl::LoadTimeZone(kAnyZone, &zone)) {
      return absl::FailedPreconditionError(
          absl::StrCat(Quoted(name),
                       " cannot be looked up: this machine has no time zone data; "
                       "install its package tzdata, or use UTC"));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("no time zone ", Quoted(name),
                                                 ": its name is one such as ", kAnyZone,
                                                 ", of the system's tzdata"));
}

}  // namespace muster::base
