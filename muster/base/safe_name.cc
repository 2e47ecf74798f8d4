#include "muster/base/safe_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"

namespace muster::base {
namespace {

constexpr size_t kHashDigits = 12;

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
  const std::string start = Resemblance(text, kMaxSafeNameBytes - kHashDigits - 1);
  return start.empty() ? hash : absl::StrCat(start, "-", hash);
}

}  // namespace muster::base
