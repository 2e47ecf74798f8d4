// Policies as YAML, read strictly: a role that was misspelt must not silently deny or allow.
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <initializer_list>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/policy.h"

namespace muster::rpc {
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

absl::StatusOr<Policy> LoadPolicy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxPolicyBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read the policy '", path, "'"));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return ParsePolicy(text, path);
}

}  // namespace muster::rpc
