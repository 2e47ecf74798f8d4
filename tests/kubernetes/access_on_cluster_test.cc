// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/kubernetes/workload.h"
#include "tests/kubernetes/test_cluster.h"

namespace muster::kubernetes_test {
namespace {

using kubernetes::Access;
using ::testing::HasSubstr;
using ::testing::Not;

// Each way to authenticate to a real server.
class AccessOnClusterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasCluster()) GTEST_SKIP() << "MUSTER_TEST_KUBECONFIG names no cluster";
    cluster_ = std::make_unique<TestCluster>();
  }

  absl::Status Look(const absl::StatusOr<Access>& access) {
    if (!access.ok()) return access.status();
    const auto client =
        kubernetes::Client::Open(*access, base::RealClock(), {.max_attempts = 1}).value();
    return kubernetes::ListPods(client.get(), cluster_->name_space(), "app=x").status();
  }
  // A role takes effect a moment after its binding.
  bool MayLook(const absl::StatusOr<Access>& access) {
    absl::Status status;
    const bool may = Eventually([&] { return (status = Look(access)).ok(); });
    EXPECT_TRUE(may) << status;
    return may;
  }
  std::string Write(const std::string& name, const std::string& content) {
    std::ofstream(cluster_->dir() / name) << content;
    return cluster_->dir() / name;
  }
  std::string Authority() { return kubernetes::Read(cluster_->admin_access().authority).value(); }

  std::unique_ptr<TestCluster> cluster_;
};

TEST_F(AccessOnClusterTest, AsAPodOfTheCluster) {
  const Access agent = cluster_->AgentAccess({"processor"});
  ASSERT_TRUE(absl::StartsWith(agent.server, "https://"));
  const std::string host_and_port = agent.server.substr(8);
  const size_t colon = host_and_port.rfind(':');
  Write("ca.crt", Authority());
  Write("namespace", cluster_->name_space());
  std::filesystem::copy_file(agent.token.file, cluster_->dir() / "token");
  const auto access = kubernetes::InClusterAccess(
      [&](const std::string& name) -> std::optional<std::string> {
        if (name == "KUBERNETES_SERVICE_HOST") return host_and_port.substr(0, colon);
        if (name == "KUBERNETES_SERVICE_PORT") return host_and_port.substr(colon + 1);
        return std::nullopt;
      },
      cluster_->dir().path());
  EXPECT_TRUE(MayLook(access));
  EXPECT_EQ(access->default_namespace, cluster_->name_space());
}

TEST_F(AccessOnClusterTest, WithATokenThatIsRotated) {
  const Access agent = cluster_->AgentAccess({"processor"});
  const auto client =
      kubernetes::Client::Open(agent, base::RealClock(), {.max_attempts = 1}).value();
  const auto look = [&] {
    return kubernetes::ListPods(client.get(), cluster_->name_space(), "app=x").status();
  };
  EXPECT_TRUE(Eventually([&] { return look().ok(); }));
  std::ofstream(agent.token.file) << "expired";
  EXPECT_EQ(look().code(), absl::StatusCode::kPermissionDenied);
  std::ofstream(agent.token.file) << cluster_->NewToken("agent-1");
  EXPECT_TRUE(look().ok());
}

TEST_F(AccessOnClusterTest, WithAKubeconfigOfATokenAndAnAuthorityWithinIt) {
  const Access agent = cluster_->AgentAccess({"processor"});
  const std::string text = absl::StrCat(
      "current-context: c\n"
      "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
      "clusters: [{name: k, cluster: {server: '",
      agent.server, "', certificate-authority-data: ", absl::Base64Escape(Authority()),
      "}}]\n"
      "users: [{name: u, user: {token: ",
      kubernetes::CurrentToken(agent).value(), "}}]\n");
  EXPECT_TRUE(MayLook(kubernetes::KubeconfigAccess(Write("config", text))));
}

TEST_F(AccessOnClusterTest, WithAClientCertificateInFilesOrWithinAKubeconfig) {
  const Access& admin = cluster_->admin_access();
  if (admin.certificate.empty()) GTEST_SKIP() << "its user has no client certificate";
  Access access = admin;
  access.authority = {.data = Authority()};
  access.certificate = {.data = kubernetes::Read(admin.certificate).value()};
  access.key = {.data = kubernetes::Read(admin.key).value()};
  EXPECT_TRUE(Look(access).ok());
  access.authority = {.file = Write("ca.crt", Authority())};
  access.certificate = {.file = Write("me.crt", access.certificate.data)};
  access.key = {.file = Write("me.key", access.key.data)};
  EXPECT_TRUE(Look(access).ok());
}

TEST_F(AccessOnClusterTest, TrustsNoServerThatItsAuthorityHasNotSigned) {
  Access access = cluster_->AgentAccess({"processor"});
  ASSERT_TRUE(MayLook(access));
  access.authority = {};
  const absl::Status status = Look(access);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("certificate"));
  EXPECT_THAT(std::string(status.message()),
              Not(HasSubstr(kubernetes::CurrentToken(access).value())));
  access.skip_verification = true;
  EXPECT_TRUE(Look(access).ok());
}

TEST_F(AccessOnClusterTest, IsRefusedWithoutCredentials) {
  Access access = cluster_->admin_access();
  access.certificate = {};
  access.key = {};
  access.token = {};
  EXPECT_EQ(Look(access).code(), absl::StatusCode::kPermissionDenied);
  access.token.data = "eyJhbGciOiJub25lIn0.e30.";
  const absl::Status status = Look(access);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("eyJ")));
}

}  // namespace
}  // namespace muster::kubernetes_test
