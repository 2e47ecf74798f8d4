// SPDX-License-Identifier: Apache-2.0

// Reads access data from a pod's environment, and from kubeconfig files as kubectl does.

#include "muster/kubernetes/access.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/status.h"
#include "muster/kubernetes/limits.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/yaml.h"

namespace muster::kubernetes {

namespace {

absl::StatusOr<std::string> ReadCredential(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  std::string bytes(kMaxCredentialBytes + 1, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (stream.bad()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  bytes.resize(static_cast<size_t>(stream.gcount()));
  if (bytes.size() > kMaxCredentialBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is too large for a credential"));
  }
  return bytes;
}

bool IsHeaderText(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// "https://[::1]:6443" → "[::1]"
absl::string_view HostOf(absl::string_view server) {
  server = server.substr(server.find("://") + 3);
  server = server.substr(0, server.find('/'));
  const size_t port = server.rfind(':');
  const size_t bracket = server.rfind(']');
  if (port != absl::string_view::npos && (bracket == absl::string_view::npos || port > bracket)) {
    server = server.substr(0, port);
  }
  return server;
}

bool IsLoopback(absl::string_view host) {
  return host == "localhost" || host == "[::1]" ||
         (absl::StartsWith(host, "127.") &&
          host.find_first_not_of("0123456789.") == absl::string_view::npos);
}

std::optional<std::string> Set(const Environment& environment, const std::string& name) {
  std::optional<std::string> value = environment(name);
  if (value.has_value() && value->empty()) return std::nullopt;
  return value;
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value =
        std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): no thread changes it
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

absl::StatusOr<Access> InClusterAccess(const Environment& environment,
                                       absl::string_view service_account) {
  const auto host = Set(environment, "KUBERNETES_SERVICE_HOST");
  const auto port = Set(environment, "KUBERNETES_SERVICE_PORT");
  if (!host.has_value() || !port.has_value()) {
    return absl::NotFoundError(
        "this is no pod of a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not "
        "set");
  }
  Access access;
  const bool is_v6 = absl::StrContains(*host, ':');
  access.server = absl::StrCat("https://", is_v6 ? "[" : "", *host, is_v6 ? "]:" : ":", *port);
  access.authority.file = absl::StrCat(service_account, "/ca.crt");
  access.token.file = absl::StrCat(service_account, "/token");
  const auto own_namespace = ReadCredential(absl::StrCat(service_account, "/namespace"));
  if (own_namespace.ok() && !absl::StripAsciiWhitespace(*own_namespace).empty()) {
    access.default_namespace = std::string(absl::StripAsciiWhitespace(*own_namespace));
  }
  MUSTER_RETURN_IF_ERROR(Validate(access));
  return access;
}

absl::StatusOr<Access> FindAccess(const std::string& kubeconfig, const Environment& environment,
                                  absl::string_view service_account) {
  if (!kubeconfig.empty()) return KubeconfigAccess(kubeconfig);
  auto in_cluster = InClusterAccess(environment, service_account);
  if (!absl::IsNotFound(in_cluster.status())) return in_cluster;
  if (const auto files = Set(environment, "KUBECONFIG")) return KubeconfigAccess(*files);
  if (const auto home = Set(environment, "HOME")) {
    auto access = KubeconfigAccess(absl::StrCat(*home, "/.kube/config"));
    if (!absl::IsNotFound(access.status())) return access;
  }
  return absl::NotFoundError(
      "no cluster is known: this is no pod of one, KUBECONFIG is not set, and ~/.kube/config is "
      "not there");
}

absl::Status Validate(const Access& access) {
  const bool is_plain = absl::StartsWith(access.server, "http://");
  if (!is_plain && !absl::StartsWith(access.server, "https://")) {
    return absl::InvalidArgumentError(
        "the server's address begins neither with https:// nor http://");
  }
  const absl::string_view host = HostOf(access.server);
  // An address with a user in it holds a secret, so it is not repeated.
  if (host.empty() || !IsHeaderText(access.server) || absl::StrContains(access.server, '@') ||
      absl::StrContains(access.server, '?') || absl::StrContains(access.server, '#')) {
    return absl::InvalidArgumentError("the server's address is not of the form https://HOST:PORT");
  }
  if (is_plain && !access.token.empty() && !IsLoopback(host)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a token is not sent in plain text to ", std::string(host), ": use https://"));
  }
  if (access.certificate.empty() != access.key.empty()) {
    return absl::InvalidArgumentError(
        "a client certificate and its key go together: one is missing");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Read(const CredentialSource& material) {
  if (!material.file.empty()) return ReadCredential(material.file);
  return material.data;
}

absl::StatusOr<std::string> CurrentToken(const Access& access) {
  if (access.token.empty()) return std::string();
  absl::StatusOr<std::string> token = Read(access.token);
  if (!token.ok()) {
    return absl::UnauthenticatedError(absl::StrCat("no token: ", token.status().message()));
  }
  absl::StripAsciiWhitespace(&*token);
  if (token->empty() || !IsHeaderText(*token)) {
    return absl::UnauthenticatedError(absl::StrCat(
        "no token: what ", access.token.file.empty() ? "the kubeconfig" : access.token.file.c_str(),
        " holds is none"));
  }
  return token;
}

namespace {

struct KubeFile {
  std::string path;
  YAML::Node root;
};

// A section of a file, and where paths in it begin.
struct Section {
  YAML::Node node;
  std::string path;

  std::string Text(const char* key) const {
    const YAML::Node value = node[key];
    return value.IsDefined() && value.IsScalar() ? value.Scalar() : "";
  }
  bool Has(const char* key) const {
    const YAML::Node value = node[key];
    return value.IsDefined() && !value.IsNull();
  }
};

// Notes where a document begins, and ignores the rest of it.
class Beginning final : public YAML::EventHandler {
 public:
  using Text = const std::string&;
  void OnDocumentStart(const YAML::Mark& mark) override { line = mark.line; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, Text, YAML::anchor_t, Text) override {}
  void OnSequenceStart(const YAML::Mark&, Text, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, Text, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  int line = 0;  // from 0 on
};

// yaml-cpp ends a document before a line that does not fit, as one that is indented less than the
// first key, and would take the rest of the file for another document. As kubectl does, only what
// "---" begins is passed over.
absl::Status CheckIsReadToItsEnd(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Beginning beginning;
  if (!parser.HandleNextDocument(beginning) || !parser.HandleNextDocument(beginning)) {
    return absl::OkStatus();
  }
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  const auto line = static_cast<size_t>(beginning.line);
  if (line < lines.size() && absl::StartsWith(lines[line], "---")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("line ", beginning.line + 1,
                   ": what begins here does not belong to what stands above; are all keys indented "
                   "alike?"));
}

absl::StatusOr<KubeFile> Load(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, Read(CredentialSource{.file = path}));
  try {
    if (const absl::Status whole = CheckIsReadToItsEnd(text); !whole.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(path, " ", whole.message()));
    }
    KubeFile file{path, YAML::Load(text)};
    if (file.root.IsMap()) return file;
    if (file.root.IsNull()) return KubeFile{path, YAML::Node(YAML::NodeType::Map)};
  } catch (const YAML::Exception& error) {
    // yaml-cpp's message says what it expected, and repeats nothing of the file.
    return absl::InvalidArgumentError(
        absl::StrCat(path, " line ", error.mark.line + 1, ": no YAML: ", error.msg));
  }
  return absl::InvalidArgumentError(absl::StrCat(path, " is no kubeconfig"));
}

absl::StatusOr<std::vector<KubeFile>> LoadAll(absl::string_view files) {
  std::vector<KubeFile> loaded;
  for (absl::string_view path : absl::StrSplit(files, ':', absl::SkipEmpty())) {
    absl::StatusOr<KubeFile> file = Load(std::string(path));
    if (absl::IsNotFound(file.status())) continue;
    if (!file.ok()) return file.status();
    loaded.push_back(*std::move(file));
  }
  if (loaded.empty()) {
    return absl::NotFoundError(absl::StrCat("there is no kubeconfig at ", files));
  }
  return loaded;
}

// The entry `name` of the list `list` ("clusters"), whose content lies below `key` ("cluster").
absl::StatusOr<Section> Named(const std::vector<KubeFile>& files, const char* list, const char* key,
                              const std::string& name) {
  for (const KubeFile& file : files) {
    const YAML::Node entries = file.root[list];
    if (!entries.IsDefined() || !entries.IsSequence()) continue;
    for (const YAML::Node& entry : entries) {
      if (!entry.IsMap()) continue;
      const YAML::Node own_name = entry["name"];
      if (!own_name.IsDefined() || !own_name.IsScalar() || own_name.Scalar() != name) continue;
      const YAML::Node content = entry[key];
      if (content.IsDefined() && content.IsMap()) return Section{content, file.path};
      return absl::InvalidArgumentError(
          absl::StrCat(file.path, " line ", entry.Mark().line + 1, ": '", name, "' has no ", key));
    }
  }
  return absl::NotFoundError(
      absl::StrCat("the kubeconfig (", files.front().path, ") has no ", key, " '", name, "'"));
}

// Paths are relative to the file that they stand in.
std::string Resolved(const Section& section, const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  const size_t slash = section.path.rfind('/');
  if (slash == std::string::npos) return path;
  return absl::StrCat(section.path.substr(0, slash + 1), path);
}

// "certificate-authority-data" goes before "certificate-authority".
absl::StatusOr<CredentialSource> MaterialOf(const Section& section, const std::string& key) {
  CredentialSource material;
  const std::string data_key = key + "-data";
  const std::string encoded = section.Text(data_key.c_str());
  if (encoded.empty()) {
    material.file = Resolved(section, section.Text(key.c_str()));
  } else if (!absl::Base64Unescape(encoded, &material.data)) {
    return absl::InvalidArgumentError(absl::StrCat(section.path, ": ", data_key, " is no base64"));
  }
  return material;
}

absl::Status Refusal(const Section& section, absl::string_view what, absl::string_view instead) {
  return absl::UnimplementedError(
      absl::StrCat(section.path, " asks for ", what, ", which muster does not do: ", instead));
}

absl::Status AddCluster(const Section& cluster, Access* access) {
  if (cluster.Has("proxy-url")) {
    return Refusal(cluster, "a proxy (proxy-url)", "set HTTPS_PROXY in the environment");
  }
  if (cluster.Has("tls-server-name")) {
    return Refusal(cluster, "another server name (tls-server-name)",
                   "name the server as its certificate does");
  }
  access->server = std::string(absl::StripSuffix(cluster.Text("server"), "/"));
  access->skip_verification = cluster.Text("insecure-skip-tls-verify") == "true";
  MUSTER_ASSIGN_OR_RETURN(access->authority, MaterialOf(cluster, "certificate-authority"));
  if (access->skip_verification && !access->authority.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        cluster.path, ": insecure-skip-tls-verify and a certificate authority exclude each other"));
  }
  return absl::OkStatus();
}

absl::Status RefuseWhatIsNotDone(const Section& user) {
  constexpr char kToken[] =
      "use a token (kubectl create token), a tokenFile that something else renews, or a client "
      "certificate";
  if (user.Has("exec")) return Refusal(user, "a credential plug-in (exec)", kToken);
  if (user.Has("auth-provider")) return Refusal(user, "an auth-provider", kToken);
  if (user.Has("username") || user.Has("password")) {
    return Refusal(user, "a password (username, password)", kToken);
  }
  if (user.Has("as")) return Refusal(user, "impersonation (as)", kToken);
  return absl::OkStatus();
}

absl::Status AddUser(const Section& user, Access* access) {
  MUSTER_RETURN_IF_ERROR(RefuseWhatIsNotDone(user));
  MUSTER_ASSIGN_OR_RETURN(access->certificate, MaterialOf(user, "client-certificate"));
  MUSTER_ASSIGN_OR_RETURN(access->key, MaterialOf(user, "client-key"));
  // As kubectl has it: a file goes before what stands beside it, for the file is renewed.
  access->token.file = Resolved(user, user.Text("tokenFile"));
  if (access->token.file.empty()) access->token.data = user.Text("token");
  return absl::OkStatus();
}

std::string CurrentContext(const std::vector<KubeFile>& files) {
  for (const KubeFile& file : files) {
    const YAML::Node current = file.root["current-context"];
    if (current.IsDefined() && current.IsScalar() && !current.Scalar().empty()) {
      return current.Scalar();
    }
  }
  return "";
}

absl::StatusOr<Access> AccessOf(const std::vector<KubeFile>& files, std::string context_name) {
  if (context_name.empty()) context_name = CurrentContext(files);
  if (context_name.empty()) {
    return absl::NotFoundError(
        absl::StrCat("the kubeconfig (", files.front().path, ") has no current-context"));
  }
  MUSTER_ASSIGN_OR_RETURN(const Section context, Named(files, "contexts", "context", context_name));
  MUSTER_ASSIGN_OR_RETURN(const Section cluster,
                          Named(files, "clusters", "cluster", context.Text("cluster")));
  Access access;
  MUSTER_RETURN_IF_ERROR(AddCluster(cluster, &access));
  if (!context.Text("user").empty()) {
    MUSTER_ASSIGN_OR_RETURN(const Section user,
                            Named(files, "users", "user", context.Text("user")));
    MUSTER_RETURN_IF_ERROR(AddUser(user, &access));
  }
  if (context.Has("namespace")) access.default_namespace = context.Text("namespace");
  MUSTER_RETURN_IF_ERROR(base::Annotate(Validate(access), cluster.path));
  return access;
}

}  // namespace

absl::StatusOr<Access> KubeconfigAccess(absl::string_view files, absl::string_view context) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<KubeFile> loaded, LoadAll(files));
  try {
    return AccessOf(loaded, std::string(context));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(loaded.front().path, " line ", error.mark.line + 1, ": ", error.msg));
  }
}

}  // namespace muster::kubernetes
