// SPDX-License-Identifier: Apache-2.0

// Reads policies from YAML, strictly: a misspelt role must not silently deny or allow.

#include "muster/rpc/policy.h"

#include <sys/stat.h>
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
#include "grpc/grpc_security_constants.h"
#include "grpcpp/security/auth_context.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/status.h"

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

namespace {

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

}  // namespace

absl::StatusOr<Policy> LoadPolicy(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadPolicyText(path));
  return ParsePolicy(text, path);
}

namespace {

constexpr absl::string_view kLocalTransport = "local";

std::string ToString(const grpc::string_ref& text) { return {text.data(), text.size()}; }

std::vector<std::string> Properties(const grpc::AuthContext& context, const std::string& name) {
  std::vector<std::string> values;
  for (const grpc::string_ref& value : context.FindPropertyValues(name)) {
    values.push_back(ToString(value));
  }
  return values;
}

Caller CallerOf(const grpc::AuthContext& context) {
  Caller caller;
  for (const std::string& transport :
       Properties(context, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME)) {
    caller.loopback |= transport == std::string(kLocalTransport);
  }
  // gRPC tells the names of certificates that it has verified only.
  for (std::string& name : Properties(context, GRPC_X509_CN_PROPERTY_NAME)) {
    caller.common_name = std::move(name);
  }
  caller.alternative_names = Properties(context, GRPC_X509_SAN_PROPERTY_NAME);
  return caller;
}

}  // namespace

absl::StatusOr<std::shared_ptr<PolicyGuard>> PolicyGuard::Open(const std::string& path,
                                                               base::Clock* clock) {
  std::shared_ptr<PolicyGuard> guard(new PolicyGuard(path, clock));
  base::MutexLock lock(&guard->mu_);
  guard->version_ = VersionOf(path);
  MUSTER_ASSIGN_OR_RETURN(Policy policy, LoadPolicy(path));
  guard->policy_ = std::make_shared<const Policy>(std::move(policy));
  guard->next_look_ = clock->Monotonic() + kPolicyRefresh;
  return guard;
}

std::optional<PolicyGuard::Version> PolicyGuard::VersionOf(const std::string& path) {
  struct stat file = {};
  if (stat(path.c_str(), &file) != 0) return std::nullopt;
  return Version{file.st_ino, file.st_ctim.tv_sec * 1'000'000'000 + file.st_ctim.tv_nsec,
                 file.st_size};
}

std::shared_ptr<const Policy> PolicyGuard::Current() {
  base::MutexLock lock(&mu_);
  if (clock_->Monotonic() < next_look_) return policy_;
  next_look_ = clock_->Monotonic() + kPolicyRefresh;
  const std::optional<Version> version = VersionOf(path_);
  if (version == version_) return policy_;
  const absl::StatusOr<std::string> text = ReadPolicyText(path_);
  // One that cannot be read is read again at the next look: the cause, such as too many open files,
  // may pass without a change of the file.
  if (text.ok()) version_ = version;
  const bool is_told = std::exchange(was_unreadable_, !text.ok()) && was_unreadable_;
  absl::StatusOr<Policy> policy = text.ok() ? ParsePolicy(*text, path_) : text.status();
  if (policy.ok()) {
    policy_ = std::make_shared<const Policy>(*std::move(policy));
    base::Log(base::kInfo, "a changed policy is in force", {{"file", path_}});
  } else if (!is_told) {
    base::Log(base::kError, "the changed policy is wrong; the previous one stays in force",
              {{"file", path_}, {"why", policy.status().message()}});
  }
  return policy_;
}

absl::Status PolicyGuard::Check(const Caller& caller, absl::string_view method) {
  return Current()->Check(caller, method);
}

grpc::Status PolicyGuard::Process(const InputMetadata& metadata, grpc::AuthContext* context,
                                  OutputMetadata*, OutputMetadata*) {
  const auto path = metadata.find(":path");
  if (path == metadata.end()) {
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "the call names no method");
  }
  const std::string full = ToString(path->second);
  return ToGrpc(Check(CallerOf(*context), absl::StripPrefix(full, "/")));
}

}  // namespace muster::rpc
