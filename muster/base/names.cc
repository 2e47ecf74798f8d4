// SPDX-License-Identifier: Apache-2.0
#include "muster/base/names.h"

#include <limits.h>
#include <unistd.h>

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/base/random.h"

namespace muster::base {

namespace {

constexpr size_t kHashDigits = 12;
constexpr size_t kMaxResemblanceBytes = kMaxSafeNameBytes - kHashDigits - 1;

bool IsNameChar(char c) { return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '-'; }

// The part of `text` that a person recognises: lower case, a single dash for all else, cut to
// `size`.
std::string Resemblance(absl::string_view text, size_t size) {
  std::string result;
  for (char c : text) {
    if (result.size() == size) break;
    const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
    const char kept = IsNameChar(lower) ? lower : '-';
    if (kept == '-' && (result.empty() || result.back() == '-')) continue;
    result.push_back(kept);
  }
  if (absl::EndsWith(result, "-")) result.pop_back();
  return result;
}

}  // namespace

bool IsSafeName(absl::string_view name) {
  if (name.size() < kMinSafeNameBytes || name.size() > kMaxSafeNameBytes) return false;
  if (name.front() == '-' || name.back() == '-' || absl::StrContains(name, "--")) return false;
  for (char c : name) {
    if (!IsNameChar(c)) return false;
  }
  return true;
}

std::string MakeSafeName(absl::string_view text) {
  if (IsSafeName(text)) return std::string(text);
  const std::string hash = Sha256Hex(text).substr(0, kHashDigits);
  const std::string start = Resemblance(text, kMaxResemblanceBytes);
  return start.empty() ? hash : absl::StrCat(start, "-", hash);
}

std::string PartitionName(absl::string_view name, int64_t partition) {
  return MakeSafeName(absl::StrCat(name, "-", partition));
}

std::string SafeStart(absl::string_view start) { return Resemblance(start, kMaxResemblanceBytes); }

absl::string_view BeforeHash(absl::string_view name) {
  if (name.size() <= kHashDigits + 1) return "";
  const absl::string_view start = name.substr(0, name.size() - kHashDigits - 1);
  const absl::string_view hash = name.substr(start.size() + 1);
  if (name[start.size()] != '-') return "";
  if (hash.find_first_not_of("0123456789abcdef") != absl::string_view::npos) return "";
  // One byte less may be what a dash at the cut left.
  return start.size() + 1 < kMaxResemblanceBytes ? start : "";
}

namespace {

std::string HostName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

std::string LowerCaseWords(absl::string_view text) {
  std::string result = absl::AsciiStrToLower(text);
  for (char& c : result) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '-';
  }
  return result;
}

}  // namespace

std::string MakeInstanceId(absl::string_view role) {
  const auto random = static_cast<uint32_t>(RandomSeed());
  return absl::StrCat(LowerCaseWords(role), "-", LowerCaseWords(HostName()), "-", getpid(), "-",
                      absl::Hex(random, absl::kZeroPad8));
}

}  // namespace muster::base
