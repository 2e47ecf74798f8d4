#include "muster/kubernetes/access.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

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

}  // namespace
}  // namespace muster::kubernetes
