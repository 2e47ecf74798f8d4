#include "muster/rpc/policy.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace muster::rpc {
namespace {

constexpr absl::string_view kHealthMethods = "grpc.health.v1.Health/*";

// Linear but for the last star, to which it returns: no pattern takes exponential time.
bool Matches(absl::string_view pattern, absl::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = absl::string_view::npos;
  size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool IsMember(const Caller& caller, absl::string_view member) {
  if (member == "loopback") return caller.loopback;
  if (member == "authenticated") return caller.authenticated();
  if (absl::ConsumePrefix(&member, "cn:")) return caller.common_name == std::string(member);
  if (!absl::ConsumePrefix(&member, "san:")) return false;
  return std::any_of(caller.alternative_names.begin(), caller.alternative_names.end(),
                     [member](const std::string& name) { return name == std::string(member); });
}

bool Allows(const PolicyRole& role, const Caller& caller, absl::string_view method) {
  return std::any_of(role.members.begin(), role.members.end(),
                     [&](const std::string& member) { return IsMember(caller, member); }) &&
         std::any_of(role.methods.begin(), role.methods.end(),
                     [&](const std::string& glob) { return Matches(glob, method); });
}

}  // namespace

std::string Caller::ToString() const {
  if (!common_name.empty()) return absl::StrCat("cn:", common_name);
  if (!alternative_names.empty()) return absl::StrCat("san:", alternative_names.front());
  return loopback ? "loopback" : "a caller without a certificate";
}

absl::Status Policy::Check(const Caller& caller, absl::string_view method) const {
  if (Matches(kHealthMethods, method)) return absl::OkStatus();
  for (const PolicyRole& role : roles) {
    if (Allows(role, caller, method)) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("the server's policy does not allow ", method, " to ", caller.ToString()));
}

}  // namespace muster::rpc
