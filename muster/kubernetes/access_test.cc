// SPDX-License-Identifier: Apache-2.0
#include "muster/kubernetes/access.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/kubernetes/limits.h"
#include "muster/os/temp_dir.h"

namespace muster::kubernetes {

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Environment Has(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

Environment InPod(const std::string& host = "10.0.0.1") {
  return Has({{"KUBERNETES_SERVICE_HOST", host}, {"KUBERNETES_SERVICE_PORT", "443"}});
}

class AccessTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    std::ofstream(dir_ / name) << content;
    return dir_ / name;
  }

  const os::TempDir dir_;
};

TEST_F(AccessTest, IsWhatAClusterTellsItsPods) {
  Write("token", "t0ken\n");
  Write("namespace", "billing\n");
  const auto access = InClusterAccess(InPod(), dir_.path());
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://10.0.0.1:443");
  EXPECT_EQ(access->default_namespace, "billing");
  EXPECT_EQ(access->authority.file, dir_ / "ca.crt");
  EXPECT_FALSE(access->skip_verification);
  EXPECT_EQ(CurrentToken(*access).value(), "t0ken");
}

TEST_F(AccessTest, PutsAnIpV6AddressIntoBrackets) {
  EXPECT_EQ(InClusterAccess(InPod("fd00::1"), dir_.path())->server, "https://[fd00::1]:443");
}

TEST_F(AccessTest, IsNoneOutsideAPod) {
  EXPECT_EQ(InClusterAccess(Has({}), dir_.path()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(InClusterAccess(InPod(""), dir_.path()).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(AccessTest, SaysThatItsTokenCannotBeHad) {
  Access access;
  access.token.file = dir_ / "none";
  EXPECT_EQ(CurrentToken(access).status().code(), absl::StatusCode::kUnauthenticated);
  access.token.file = Write("huge", std::string(kMaxCredentialBytes + 1, 't'));
  EXPECT_EQ(CurrentToken(access).status().code(), absl::StatusCode::kUnauthenticated);
  access.token.file = dir_.path();
  EXPECT_EQ(CurrentToken(access).status().code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessTest, SendsATokenInPlainTextToLoopbackOnly) {
  Access access;
  access.token.data = "secret";
  for (const char* fine : {"http://127.0.0.1:8001", "http://localhost:8001", "http://[::1]:8001",
                           "https://example.org", "https://10.0.0.1:6443/k8s/clusters/one"}) {
    access.server = fine;
    EXPECT_TRUE(Validate(access).ok()) << fine;
  }
  for (const char* open : {"http://example.org", "http://10.0.0.1:8001", "http://127.evil.org",
                           "http://127.0.0.1.evil.org:80"}) {
    access.server = open;
    const absl::Status status = Validate(access);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << open;
    EXPECT_THAT(std::string(status.message()), HasSubstr("plain text"));
  }
}

TEST_F(AccessTest, RefusesWhatIsNoAddressAndRepeatsNoPasswordInIt) {
  Access access;
  for (const char* address : {"", "example.org", "ftp://example.org", "https://", "https:///path",
                              "https://me:hunter2@example.org", "https://a b", "https://a\r\nb",
                              "https://example.org?x=hunter2", "file:///etc/passwd"}) {
    access.server = address;
    const absl::Status status = Validate(access);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("hunter2")));
  }
}

TEST_F(AccessTest, WantsACertificateWithItsKey) {
  Access access;
  access.server = "https://example.org";
  access.certificate.file = "client.crt";
  EXPECT_EQ(Validate(access).code(), absl::StatusCode::kInvalidArgument);
  access.key.file = "client.key";
  EXPECT_TRUE(Validate(access).ok());
}

TEST_F(AccessTest, LooksWhereKubectlLooks) {
  const auto config = [this](const std::string& name, const std::string& server) {
    return Write(name,
                 "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
                 "clusters: [{name: k, cluster: {server: '" +
                     server + "'}}]\n");
  };
  const std::string named = config("named", "https://named");
  const std::string listed = config("listed", "https://listed");
  std::filesystem::create_directory(dir_ / ".kube");
  config(".kube/config", "https://home");
  const auto pod = Has({{"KUBERNETES_SERVICE_HOST", "pod"},
                        {"KUBERNETES_SERVICE_PORT", "443"},
                        {"KUBECONFIG", listed},
                        {"HOME", dir_.path()}});
  const auto host = Has({{"KUBECONFIG", listed}, {"HOME", dir_.path()}});
  EXPECT_EQ(FindAccess(named, pod, dir_.path())->server, "https://named");
  EXPECT_EQ(FindAccess("", pod, dir_.path())->server, "https://pod:443");
  EXPECT_EQ(FindAccess("", host, dir_.path())->server, "https://listed");
  EXPECT_EQ(FindAccess("", Has({{"HOME", dir_.path()}}))->server, "https://home");
  EXPECT_EQ(FindAccess("", Has({})).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FindAccess("", Has({{"HOME", "/nowhere"}})).status().code(),
            absl::StatusCode::kNotFound);
}

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTwoContexts[] = R"(
apiVersion: v1
kind: Config
current-context: work
contexts:
- {name: work, context: {cluster: c1, user: u1, namespace: billing}}
- {name: other, context: {cluster: c2, user: u2}}
clusters:
- {name: c1, cluster: {server: "https://one:6443/", certificate-authority-data: Y2E=}}
- {name: c2, cluster: {server: "https://two:6443", insecure-skip-tls-verify: true}}
users:
- {name: u1, user: {token: t0ken}}
- {name: u2, user: {client-certificate: pki/me.crt, client-key-data: a2V5}}
)";

class KubeconfigTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    std::ofstream(dir_ / name) << content;
    return dir_ / name;
  }

  // Writes a kubeconfig with this one cluster and this one user.
  std::string One(const std::string& cluster, const std::string& user) {
    return Write("one", absl::StrCat("current-context: c\n",
                                     "contexts: [{name: c, context: {cluster: k, user: u}}]\n",
                                     "clusters: [{name: k, cluster: ", cluster, "}]\n",
                                     "users: [{name: u, user: ", user, "}]\n"));
  }
  absl::Status Refusal(const std::string& cluster, const std::string& user) {
    return KubeconfigAccess(One(cluster, user)).status();
  }

  const os::TempDir dir_;
};

TEST_F(KubeconfigTest, FollowsItsCurrentContext) {
  const auto access = KubeconfigAccess(Write("config", kTwoContexts));
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://one:6443");
  EXPECT_EQ(access->authority.data, "ca");
  EXPECT_EQ(access->token.data, "t0ken");
  EXPECT_EQ(access->default_namespace, "billing");
  EXPECT_FALSE(access->skip_verification);
}

TEST_F(KubeconfigTest, FollowsTheContextThatIsNamed) {
  const auto access = KubeconfigAccess(Write("config", kTwoContexts), "other");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://two:6443");
  EXPECT_TRUE(access->skip_verification);
  EXPECT_EQ(access->certificate.file, dir_ / "pki/me.crt");
  EXPECT_EQ(access->key.data, "key");
  EXPECT_EQ(access->default_namespace, "default");
  EXPECT_EQ(KubeconfigAccess(dir_ / "config", "third").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(KubeconfigTest, PutsFilesTogetherAndTheFirstWordHolds) {
  const std::string contexts =
      Write("contexts", "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n");
  const std::string first = Write("first", "clusters: [{name: k, cluster: {server: 'https://a'}}]");
  const std::string second =
      Write("second", "current-context: x\nclusters: [{name: k, cluster: {server: 'https://b'}}]");
  const auto access =
      KubeconfigAccess(absl::StrCat("::", dir_ / "gone", ":", contexts, ":", first, ":", second));
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://a");
  EXPECT_EQ(KubeconfigAccess(absl::StrCat(second, ":", contexts, ":", first)).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(KubeconfigTest, PrefersATokenFileWhichIsRenewed) {
  const auto access =
      KubeconfigAccess(One("{server: 'https://a'}", "{token: old, tokenFile: token}"));
  EXPECT_EQ(access->token.file, dir_ / "token");
  EXPECT_EQ(access->token.data, "");
}

TEST_F(KubeconfigTest, ChecksCertificatesUnlessItIsWrittenNotTo) {
  for (const char* cluster :
       {"{server: 'https://a'}", "{server: 'https://a', insecure-skip-tls-verify: false}",
        "{server: 'https://a', insecure-skip-tls-verify: yes please}"}) {
    EXPECT_FALSE(KubeconfigAccess(One(cluster, "{}"))->skip_verification) << cluster;
  }
  EXPECT_EQ(Refusal("{server: 'https://a', insecure-skip-tls-verify: true, "
                    "certificate-authority: ca.crt}",
                    "{}")
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(KubeconfigTest, SaysWhatItDoesNotDoAndWhatToDoInstead) {
  for (const char* user :
       {"{exec: {command: aws, args: [hunter2]}}", "{auth-provider: {name: gcp}}",
        "{username: me, password: hunter2}", "{as: admin, token: hunter2}"}) {
    const absl::Status status = Refusal("{server: 'https://a'}", user);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << user;
    EXPECT_THAT(std::string(status.message()), HasSubstr("use a token")) << user;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("hunter2"))) << user;
  }
  for (const char* key : {"proxy-url", "tls-server-name"}) {
    EXPECT_EQ(Refusal(absl::StrCat("{server: 'https://a', ", key, ": x}"), "{}").code(),
              absl::StatusCode::kUnimplemented);
  }
}

TEST_F(KubeconfigTest, RefusesWhatIsNoKubeconfigAndRepeatsNothingOfIt) {
  for (const char* text : {"[1, 2]", "token: [hunter2", "hunter2", "a: b: hunter2",
                           "\t- hunter2: {", "&a [*a, hunter2]"}) {
    const absl::Status status = KubeconfigAccess(Write("bad", text)).status();
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(dir_ / "bad")) << text;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("hunter2"))) << text;
  }
}

// All but its first key was passed over in silence: there was no context then.
TEST_F(KubeconfigTest, RefusesAFileThatIsNotReadToItsEnd) {
  const absl::Status status =
      KubeconfigAccess(Write("bad", absl::StrCat("  kind: Config", kTwoContexts))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(dir_ / "bad line 2: what begins here"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("t0ken")));
  const std::string several = absl::StrCat("---", kTwoContexts, "---\nkind: Other\n");
  EXPECT_EQ(KubeconfigAccess(Write("several", several))->server, "https://one:6443");
}

TEST_F(KubeconfigTest, SaysWhichPartIsMissing) {
  const auto says = [this](const std::string& text) {
    return std::string(KubeconfigAccess(Write("part", text)).status().message());
  };
  EXPECT_THAT(says(""), HasSubstr("no current-context"));
  EXPECT_THAT(says("current-context: c"), HasSubstr("no context 'c'"));
  EXPECT_THAT(says("current-context: c\ncontexts: [{name: c, context: {cluster: k}}]"),
              HasSubstr("no cluster 'k'"));
  EXPECT_THAT(says("current-context: c\ncontexts: [7, {name: c}]"), HasSubstr("has no context"));
  EXPECT_THAT(says("current-context: c\ncontexts: {c: d}"), HasSubstr("no context 'c'"));
  EXPECT_EQ(KubeconfigAccess(dir_ / "gone").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(KubeconfigAccess("").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(KubeconfigTest, RefusesDataThatIsNoBase64) {
  const absl::Status status = Refusal(
      "{server: 'https://a'}", "{client-certificate-data: '!hunter2!', client-key-data: a2V5}");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("client-certificate-data is no base64"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("hunter2")));
}

}  // namespace

}  // namespace muster::kubernetes
