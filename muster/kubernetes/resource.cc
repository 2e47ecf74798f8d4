#include "muster/kubernetes/resource.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::kubernetes {
namespace {

constexpr size_t kMaxNameBytes = 253;

// What Kubernetes takes for a path segment, more strictly: objects that muster is about have DNS
// names, and roles may have colons.
bool IsName(absl::string_view name) {
  return name.size() <= kMaxNameBytes && !name.empty() && absl::ascii_isalnum(name.front()) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == ':';
         });
}

absl::Status CheckName(absl::string_view what, const std::string& name) {
  if (name.empty() || IsName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("no ", what, " of Kubernetes: '", name.substr(0, kMaxNameBytes), "'"));
}

}  // namespace

std::string RoleName(const Address& address) {
  return address.subresource.empty()
             ? address.resource.plural
             : absl::StrCat(address.resource.plural, "/", address.subresource);
}

std::string Describe(const Address& address) {
  std::string text = RoleName(address);
  if (!address.name.empty()) absl::StrAppend(&text, " '", address.name, "'");
  if (!address.name_space.empty()) {
    absl::StrAppend(&text, " in namespace '", address.name_space, "'");
  }
  return text;
}

absl::Status Validate(const Address& address) {
  const absl::Status name_space = CheckName("namespace", address.name_space);
  return name_space.ok() ? CheckName("name", address.name) : name_space;
}

std::string PathOf(const Address& address) {
  std::string path = absl::StrCat("/", address.resource.api);
  if (!address.name_space.empty()) absl::StrAppend(&path, "/namespaces/", address.name_space);
  absl::StrAppend(&path, "/", address.resource.plural);
  if (!address.name.empty()) absl::StrAppend(&path, "/", address.name);
  if (!address.subresource.empty()) absl::StrAppend(&path, "/", address.subresource);
  return path;
}

std::string QueryEscaped(absl::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-._~", c)) {
      escaped += c;
    } else {
      absl::StrAppendFormat(&escaped, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

}  // namespace muster::kubernetes
