// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/tls.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/rpc/rpc_fixture.h"
#include "tests/fakes/rpc/test_certificates.h"

namespace muster::rpc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TlsTest : public RpcTest {
 protected:
  TlsTest() {
    authority_.WriteRoot(roots_);
    authority_.Issue("server", "DNS:localhost,IP:127.0.0.1", server_link_);
    authority_.Issue("ops", "DNS:ops.example.org", ops_link_);
    authority_.Issue("ann", "DNS:ann.example.org", ann_link_);
  }

  ServerOptions Tls() const {
    ServerOptions options;
    options.tls = FilesBehind(server_link_, "");
    return options;
  }
  ServerOptions MutualTls() const {
    ServerOptions options;
    options.tls = FilesBehind(server_link_, roots_);
    return options;
  }

  // A client that trusts `roots` and shows no certificate.
  static ChannelOptions Trusting(const std::string& roots) {
    ChannelOptions options;
    options.tls = TlsFiles{"", "", roots, absl::Seconds(1)};
    return options;
  }
  ChannelOptions As(const std::string& link) const {
    ChannelOptions options;
    options.tls = FilesBehind(link, roots_);
    return options;
  }

  // Tries until the channel connects, then makes a call.
  static bool ComesThrough(const std::shared_ptr<grpc::Channel>& channel) {
    const bool connected =
        channel->WaitForConnected(std::chrono::system_clock::now() + absl::ToChronoSeconds(kLong));
    return connected && GetStats(channel).ok();
  }

  void WritePolicy(const std::string& text) { std::ofstream(policy_) << text; }

  const os::TempDir folder_;
  const std::string roots_ = folder_ / "roots.pem";
  const std::string server_link_ = folder_ / "server";
  const std::string ops_link_ = folder_ / "ops";
  const std::string ann_link_ = folder_ / "ann";
  const std::string policy_ = folder_ / "policy.yaml";
  TestAuthority authority_{"authority"};
};

TEST_F(TlsTest, ServesAClientThatTrustsItsAuthority) {
  Start(Tls());
  EXPECT_EQ(GetStats(Connect(Trusting(roots_))), absl::OkStatus());
}

TEST_F(TlsTest, IsNotSpokenToInPlaintext) {
  Start(Tls());
  EXPECT_EQ(GetStats(Connect()).code(), absl::StatusCode::kUnavailable);
}

TEST_F(TlsTest, IsNotTrustedByAClientOfAnotherAuthority) {
  TestAuthority other("other");
  other.WriteRoot(folder_ / "other.pem");
  Start(Tls());
  EXPECT_EQ(GetStats(Connect(Trusting(folder_ / "other.pem"))).code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(TlsTest, IsNotTrustedUnderAnotherName) {
  Start(Tls());
  ChannelOptions options = Trusting(roots_);
  options.server_name = "elsewhere.example.org";
  EXPECT_EQ(GetStats(Connect(options)).code(), absl::StatusCode::kUnavailable);
}

TEST_F(TlsTest, MayBeReachedByOthersWhenAnyClientIsAllowedOnPurpose) {
  ServerOptions options = Tls();
  options.addresses = {"0.0.0.0:0"};
  options.allow_any_client = true;
  Start(options);
  ChannelOptions client = Trusting(roots_);
  client.server_name = "localhost";
  EXPECT_EQ(GetStats(Connect(client)), absl::OkStatus());
}

TEST_F(TlsTest, ServesClientsWithACertificateWhenItDemandsOne) {
  Start(MutualTls());
  EXPECT_EQ(GetStats(Connect(As(ops_link_))), absl::OkStatus());
}

TEST_F(TlsTest, RefusesAClientWithoutCertificateWhenItDemandsOne) {
  Start(MutualTls());
  EXPECT_EQ(GetStats(Connect(Trusting(roots_))).code(), absl::StatusCode::kUnavailable);
}

TEST_F(TlsTest, RefusesAClientWithACertificateOfAnotherAuthority) {
  TestAuthority other("other");
  other.Issue("ops", "DNS:ops.example.org", folder_ / "impostor");
  Start(MutualTls());
  EXPECT_EQ(GetStats(Connect(As(folder_ / "impostor"))).code(), absl::StatusCode::kUnavailable);
}

TEST_F(TlsTest, ShowsARenewedCertificateWithoutRestart) {
  TestAuthority renewed("renewed");
  renewed.WriteRoot(folder_ / "renewed.pem");
  Start(Tls());
  const ChannelOptions client = Trusting(folder_ / "renewed.pem");
  EXPECT_EQ(GetStats(Connect(client)).code(), absl::StatusCode::kUnavailable);
  renewed.Issue("server", "DNS:localhost", server_link_);
  // Each try makes a new connection; the server checks its files once a second.
  while (!GetStats(Connect(client)).ok()) continue;
}

TEST_F(TlsTest, TakesClientsOfARenewedAuthorityWithoutRestart) {
  TestAuthority renewed("renewed");
  renewed.Issue("ops", "DNS:ops.example.org", folder_ / "renewed_ops");
  renewed.WriteRoot(folder_ / "renewed.pem");
  authority_.WriteRoot(folder_ / "of_the_server.pem");
  ChannelOptions before = As(ops_link_), after = As(folder_ / "renewed_ops");
  before.tls->roots = after.tls->roots = folder_ / "of_the_server.pem";
  Start(MutualTls());
  EXPECT_EQ(GetStats(Connect(after)).code(), absl::StatusCode::kUnavailable);
  std::filesystem::rename(folder_ / "renewed.pem", roots_);
  while (!GetStats(Connect(after)).ok()) continue;
  EXPECT_EQ(GetStats(Connect(before)).code(), absl::StatusCode::kUnavailable);
}

// The following tests are about the channels between services: such a channel lives as long as its
// process.

TEST_F(TlsTest, AChannelTrustsARenewedAuthority) {
  TestAuthority other("other");
  other.WriteRoot(folder_ / "trusted.pem");
  Start(Tls());
  const auto channel = Connect(Trusting(folder_ / "trusted.pem"));
  EXPECT_EQ(GetStats(channel).code(), absl::StatusCode::kUnavailable);
  std::filesystem::rename(roots_, folder_ / "trusted.pem");
  EXPECT_TRUE(ComesThrough(channel));
}

TEST_F(TlsTest, AChannelShowsARenewedCertificate) {
  TestAuthority other("other");
  other.Issue("ops", "DNS:ops.example.org", folder_ / "shown");
  Start(MutualTls());
  const auto channel = Connect(As(folder_ / "shown"));
  EXPECT_EQ(GetStats(channel).code(), absl::StatusCode::kUnavailable);
  authority_.Issue("ops", "DNS:ops.example.org", folder_ / "shown");
  EXPECT_TRUE(ComesThrough(channel));
}

TEST_F(TlsTest, NamesAFileThatIsWrong) {
  const auto why_not = [this](const TlsFiles& files) {
    ServerOptions options;
    options.tls = files;
    const absl::Status status = TryStart(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  TlsFiles files = FilesBehind(server_link_, "");
  files.certificate = folder_ / "nothing.pem";
  EXPECT_THAT(why_not(files), HasSubstr("nothing.pem': No such file or directory"));
  files = FilesBehind(server_link_, "");
  files.certificate = files.key;
  EXPECT_THAT(why_not(files), HasSubstr("holds no certificate"));
  files = FilesBehind(server_link_, "");
  files.key = files.certificate;
  EXPECT_THAT(why_not(files), HasSubstr("holds no private key"));
  files.key = FilesBehind(ops_link_, "").key;
  EXPECT_THAT(why_not(files), HasSubstr("is not that of the certificate"));
  EXPECT_THAT(why_not(FilesBehind(server_link_, folder_ / "no_roots.pem")),
              HasSubstr("no_roots.pem"));
  files.key = "";
  EXPECT_THAT(why_not(files), HasSubstr("needs its key"));
}

// gRPC tells neither side why the other one does not take it.
TEST_F(TlsTest, WarnsOfACertificateThatHasExpired) {
  authority_.Issue("old", "DNS:localhost", folder_ / "old", -60);
  base::LogCapture log;
  ASSERT_TRUE(ServerCredentials(FilesBehind(server_link_, "")).ok());
  EXPECT_THAT(log.lines(), IsEmpty());
  ASSERT_TRUE(ServerCredentials(FilesBehind(folder_ / "old", "")).ok());
  EXPECT_THAT(log.lines(), ElementsAre(AllOf(HasSubstr("level=warning"),
                                             HasSubstr("a certificate is not valid now"),
                                             HasSubstr("/old/certificate.pem"))));
}

TEST_F(TlsTest, LetsAPolicyTellClientsApart) {
  WritePolicy(R"(
roles:
  - {name: operators, members: ["cn:ops"], methods: ["muster.v1.QueueService/*"]}
)");
  ServerOptions options = MutualTls();
  options.policy_file = policy_;
  Start(options);
  EXPECT_EQ(GetStats(Connect(As(ops_link_))), absl::OkStatus());
  const absl::Status denied = GetStats(Connect(As(ann_link_)));
  EXPECT_EQ(denied.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(denied.message(),
            "the server's policy does not allow muster.v1.QueueService/GetQueueStats to cn:ann");
}

TEST_F(TlsTest, KnowsACertificateByItsAlternativeNames) {
  WritePolicy(R"(
roles:
  - {name: ann, members: ["san:ann.example.org"], methods: ["*"]}
)");
  ServerOptions options = MutualTls();
  options.policy_file = policy_;
  Start(options);
  EXPECT_EQ(GetStats(Connect(As(ann_link_))), absl::OkStatus());
  EXPECT_EQ(GetStats(Connect(As(ops_link_))).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(TlsTest, TakesNobodyForAuthenticatedWhomItHasNotAskedForACertificate) {
  WritePolicy(R"(
roles:
  - {name: known, members: [authenticated, loopback], methods: ["*"]}
)");
  ServerOptions options = Tls();
  options.policy_file = policy_;
  Start(options);
  EXPECT_EQ(GetStats(Connect(As(ops_link_))).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(TlsTest, TakesPlaintextOnLoopbackForThisMachine) {
  WritePolicy(R"(
roles:
  - {name: this-machine, members: [loopback], methods: ["muster.v1.QueueService/Get*"]}
)");
  ServerOptions options;
  options.policy_file = policy_;
  Start(options);
  EXPECT_EQ(GetStats(Connect()), absl::OkStatus());
  CallContext context(kLong);
  v1::PurgeQueueResponse response;
  EXPECT_EQ(v1::QueueService::NewStub(Connect())->PurgeQueue(&context, {}, &response).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(TlsTest, HasNoPolicyWhereNobodyCanProveWhoHeIs) {
  WritePolicy("roles: []\n");
  ServerOptions options;
  options.addresses = {"0.0.0.0:0"};
  options.allow_plaintext = true;
  options.policy_file = policy_;
  const absl::Status refused = TryStart(options);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("callers cannot prove their identity there"));
}

// TLS keeps others from listening in, not from calling.
TEST_F(TlsTest, DoesNotServeClientsThatItCannotKnowWhereOthersCanReachIt) {
  ServerOptions options = Tls();
  options.addresses = {"localhost:0", "0.0.0.0:0"};
  const absl::Status refused = TryStart(options);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("0.0.0.0:0 is neither localhost"));
  EXPECT_THAT(refused.message(), HasSubstr("--tls-roots"));
  EXPECT_THAT(refused.message(), HasSubstr("--policy"));
  EXPECT_THAT(refused.message(), HasSubstr("--allow-any-client"));
  options.allow_any_client = true;
  EXPECT_EQ(TryStart(options), absl::OkStatus());
}

TEST_F(TlsTest, ServesKnownClientsWhereOthersCanReachIt) {
  ServerOptions options = MutualTls();
  options.addresses = {"0.0.0.0:0"};
  EXPECT_EQ(TryStart(options), absl::OkStatus()) << "it has roots";
  options = Tls();
  options.addresses = {"0.0.0.0:0"};
  WritePolicy("roles: []\n");
  options.policy_file = policy_;
  EXPECT_EQ(TryStart(options), absl::OkStatus()) << "its policy allows no stranger anything";
}

TEST_F(TlsTest, DoesNotStartWithAPolicyThatIsWrong) {
  WritePolicy("roles: 7\n");
  ServerOptions options;
  options.policy_file = policy_;
  EXPECT_THAT(TryStart(options).message(), HasSubstr("policy.yaml:1:8"));
}

}  // namespace
}  // namespace muster::rpc
