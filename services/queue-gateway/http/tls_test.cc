// SPDX-License-Identifier: Apache-2.0
#include <curl/curl.h>
#include <sys/resource.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "services/queue-gateway/http/server.h"
#include "services/queue-gateway/http/tls_context.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/rpc/test_certificates.h"
#include "tests/fakes/telemetry/peer.h"

namespace muster::queue_gateway::http {
namespace {

using ::testing::HasSubstr;

size_t Append(char* bytes, size_t size, size_t count, void* text) {
  static_cast<std::string*>(text)->append(bytes, size * count);
  return size * count;
}

class HttpsTest : public ::testing::Test {
 protected:
  HttpsTest() {
    authority_.Issue("server", "DNS:localhost", folder_ / "server");
    authority_.WriteRoot(folder_ / "root.pem");
  }

  absl::StatusOr<std::unique_ptr<Server>> Start() {
    const rpc::TlsFiles files = rpc::FilesBehind(folder_ / "server", "");
    ServerOptions options;
    options.address = "127.0.0.1:0";
    options.certificate = files.certificate;
    options.key = files.key;
    options.clock = &clock_;
    return Server::Start(
        options,
        [](const Request& request) {
          return Reply{200, {}, absl::StrCat(request.is_https ? "https" : "http", request.target)};
        },
        [](int status, const Request&) {
          return Reply{status, {}, ""};
        });
  }

  // The body, or the error of the handshake.
  static std::string Get(const Server& server, const std::string& root) {
    std::string body;
    std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), curl_easy_cleanup);
    const std::string url =
        absl::StrCat("https://localhost:", telemetry::PortOf(server.address()), "/x");
    curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_CAINFO, root.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
    curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, Append);
    curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
    const CURLcode done = curl_easy_perform(curl.get());
    return done == CURLE_OK ? body : curl_easy_strerror(done);
  }

  os::TempDir folder_;
  base::FakeClock clock_;
  rpc::TestAuthority authority_{"authority"};
};

TEST_F(HttpsTest, ServesAClientThatTrustsItsAuthority) {
  const auto server = Start();
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(Get(**server, folder_ / "root.pem"), "https/x");
}

TEST_F(HttpsTest, HangsUpOnPlaintext) {
  const auto server = Start();
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(telemetry::Peer((*server)->address()).Ask("GET / HTTP/1.0\r\n\r\n"),
              testing::Not(HasSubstr("HTTP/1.")));
}

TEST_F(HttpsTest, ShowsARenewedCertificateWithoutRestart) {
  rpc::TestAuthority renewed("renewed");
  renewed.WriteRoot(folder_ / "renewed.pem");
  const auto server = Start();
  ASSERT_TRUE(server.ok()) << server.status();
  renewed.Issue("server", "DNS:localhost", folder_ / "server");
  EXPECT_THAT(Get(**server, folder_ / "renewed.pem"), HasSubstr("SSL"));
  clock_.Advance(kCertificateRefresh);
  EXPECT_EQ(Get(**server, folder_ / "renewed.pem"), "https/x");
}

TEST_F(HttpsTest, KeepsItsCertificateWhenTheRenewedOneIsUnusable) {
  const auto server = Start();
  ASSERT_TRUE(server.ok()) << server.status();
  std::filesystem::remove(folder_ / "server");
  clock_.Advance(kCertificateRefresh);
  EXPECT_EQ(Get(**server, folder_ / "root.pem"), "https/x");
}

// It was not read again before the next renewal: the old one expired meanwhile.
TEST_F(HttpsTest, ReadsARenewedCertificateAgainThatCouldNotBeRead) {
  const rpc::TlsFiles files = rpc::FilesBehind(folder_ / "server", "");
  const auto tls = TlsContext::Load({files.certificate, files.key}, kCertificateRefresh, &clock_);
  ASSERT_TRUE(tls.ok()) << tls.status();
  const auto* const before = &(*tls)->Current();
  authority_.Issue("server", "DNS:localhost", folder_ / "server");
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{3, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  clock_.Advance(kCertificateRefresh);
  EXPECT_EQ(&(*tls)->Current(), before);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  clock_.Advance(kCertificateRefresh);
  EXPECT_NE(&(*tls)->Current(), before);
}

TEST_F(HttpsTest, DoesNotStartWithAnUnusableCertificate) {
  std::filesystem::remove(folder_ / "server");
  EXPECT_EQ(Start().status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::queue_gateway::http
