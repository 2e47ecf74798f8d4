// SPDX-License-Identifier: Apache-2.0

// Reads policies from YAML, strictly: a misspelt role must not silently deny or allow.

#include "muster/rpc/policy.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <initializer_list>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/status.h"
#include "muster/rpc/limits.h"

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

namespace {

absl::Status Mistake(absl::string_view file, const YAML::Mark& mark, absl::string_view what) {
  const int line = mark.is_null() ? 1 : mark.line + 1;
  const int column = mark.is_null() ? 1 : mark.column + 1;
  return absl::InvalidArgumentError(absl::StrCat(file, ":", line, ":", column, ": ", what));
}

// Reads one document; stands for its file in the mistakes. yaml-cpp's nodes throw when they are
// asked for what they are not, so each is looked at first.
class Reader {
 public:
  explicit Reader(absl::string_view file) : file_(file) {}

  absl::StatusOr<Policy> ReadPolicy(const YAML::Node& root) const {
    MUSTER_RETURN_IF_ERROR(CheckKeys(root, {"roles"}));
    const YAML::Node roles = root["roles"];
    MUSTER_RETURN_IF_ERROR(CheckList(roles, "roles", kMaxPolicyRoles));
    Policy policy;
    for (const YAML::Node& node : roles) {
      MUSTER_ASSIGN_OR_RETURN(PolicyRole role, ReadRole(node));
      policy.roles.push_back(std::move(role));
    }
    return policy;
  }

 private:
  absl::StatusOr<PolicyRole> ReadRole(const YAML::Node& node) const {
    MUSTER_RETURN_IF_ERROR(CheckKeys(node, {"name", "members", "methods"}));
    PolicyRole role;
    MUSTER_ASSIGN_OR_RETURN(role.name, ReadText(node["name"], "name"));
    MUSTER_ASSIGN_OR_RETURN(role.members, ReadTexts(node["members"], "members"));
    MUSTER_ASSIGN_OR_RETURN(role.methods, ReadTexts(node["methods"], "methods"));
    for (size_t i = 0; i < role.members.size(); ++i) {
      MUSTER_RETURN_IF_ERROR(CheckMember(role.members[i], node["members"][i].Mark()));
    }
    for (size_t i = 0; i < role.methods.size(); ++i) {
      MUSTER_RETURN_IF_ERROR(CheckMethod(role.methods[i], node["methods"][i].Mark()));
    }
    return role;
  }

  // A map with exactly these keys.
  absl::Status CheckKeys(const YAML::Node& node, std::initializer_list<const char*> keys) const {
    if (!node.IsMap()) return Mistake(file_, node.Mark(), "must be a map");
    const std::set<std::string> known(keys.begin(), keys.end());
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      const YAML::Mark mark = entry.first.Mark();
      if (known.count(key) == 0) {
        return Mistake(file_, mark, absl::StrCat("unknown key '", key, "'"));
      }
      if (!seen.insert(key).second) {
        return Mistake(file_, mark, absl::StrCat("the key '", key, "' is there twice"));
      }
    }
    for (const std::string& key : known) {
      if (seen.count(key) == 0) {
        return Mistake(file_, node.Mark(), absl::StrCat("the key '", key, "' is missing"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckList(const YAML::Node& node, absl::string_view what, size_t max) const {
    if (node.IsSequence() && node.size() <= max) return absl::OkStatus();
    return Mistake(file_, node.Mark(),
                   absl::StrCat(what, " must be a list of at most ", max, " entries"));
  }

  absl::StatusOr<std::string> ReadText(const YAML::Node& node, absl::string_view what) const {
    if (node.IsScalar() && !node.Scalar().empty()) return node.Scalar();
    return Mistake(file_, node.Mark(), absl::StrCat(what, " must be text"));
  }

  absl::StatusOr<std::vector<std::string>> ReadTexts(const YAML::Node& node,
                                                     absl::string_view what) const {
    MUSTER_RETURN_IF_ERROR(CheckList(node, what, kMaxPolicyEntries));
    std::vector<std::string> texts;
    for (const YAML::Node& entry : node) {
      MUSTER_ASSIGN_OR_RETURN(std::string text, ReadText(entry, absl::StrCat("each of ", what)));
      texts.push_back(std::move(text));
    }
    return texts;
  }

  absl::Status CheckMember(const std::string& member, const YAML::Mark& mark) const {
    const bool named = (absl::StartsWith(member, "cn:") && member.size() > 3) ||
                       (absl::StartsWith(member, "san:") && member.size() > 4);
    if (named || member == "authenticated" || member == "loopback") return absl::OkStatus();
    return Mistake(file_, mark,
                   absl::StrCat("'", member,
                                "' is no member: it must be cn:NAME, san:NAME, authenticated or "
                                "loopback"));
  }

  absl::Status CheckMethod(const std::string& method, const YAML::Mark& mark) const {
    if (method == "*" || (absl::StrContains(method, '/') && method[0] != '/')) {
      return absl::OkStatus();
    }
    return Mistake(
        file_, mark,
        absl::StrCat("'", method, "' names no methods: write muster.v1.QueueService/* or *"));
  }

  const std::string file_;
};

}  // namespace

absl::StatusOr<Policy> ParsePolicy(absl::string_view text, absl::string_view file_name) {
  if (text.size() > kMaxPolicyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_name, ": more than ", kMaxPolicyBytes, " bytes"));
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() != 1) {
      return Mistake(file_name, YAML::Mark::null_mark(), "must be one YAML document");
    }
    return Reader(file_name).ReadPolicy(documents.front());
  } catch (const YAML::Exception& error) {
    return Mistake(file_name, error.mark, absl::StrCat("not YAML: ", error.msg));
  }
}

absl::StatusOr<std::string> ReadPolicyText(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxPolicyBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof()) {
    const int error = errno;
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot read the policy '", path,
        "': ", std::error_code(error == 0 ? EIO : error, std::generic_category()).message()));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

absl::StatusOr<Policy> LoadPolicy(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadPolicyText(path));
  return ParsePolicy(text, path);
}

}  // namespace muster::rpc
