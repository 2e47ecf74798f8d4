#include "muster/kubernetes/access.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/status_macros.h"
#include "muster/kubernetes/limits.h"

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
        std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nobody sets it
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

}  // namespace muster::kubernetes
