// SPDX-License-Identifier: Apache-2.0
#include "cli/server/mesh_client.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

v1::Instance Processor(const std::string& version, v1::Role role = v1::ROLE_PROCESSOR) {
  v1::Instance instance;
  instance.mutable_info()->set_role(role);
  v1::HandlerVersion& handler = *instance.mutable_info()->add_handlers();
  handler.set_job("shop");
  handler.set_version(version);
  return instance;
}

// It is the first that a new user sees who has started nothing yet.
TEST(ExplainTest, SaysWhatToLookAtWhereNothingListens) {
  const Peer peer{"127.0.0.1:7700", "muster-initiator", nullptr};
  const absl::Status explained =
      Explain(absl::UnavailableError("failed to connect to all addresses; last error: UNKNOWN: "
                                     "ipv4:127.0.0.1:7700: Connection refused"),
              peer);
  EXPECT_EQ(explained,
            absl::UnavailableError("127.0.0.1:7700: cannot connect: ipv4:127.0.0.1:7700: "
                                   "Connection refused; see whether muster-initiator, or "
                                   "`muster up`, runs there"));
  EXPECT_EQ(Explain(absl::UnavailableError("it is draining"), peer),
            absl::UnavailableError("127.0.0.1:7700: it is draining"));
}

// Something does run there then.
TEST(ExplainTest, SaysWhatToLookAtWhereTlsDidNotBegin) {
  const Peer peer{"127.0.0.1:7700", "muster-initiator", nullptr};
  const auto explained = [&peer](const char* why) {
    const std::string all = absl::StrCat("failed to connect to all addresses; last error: ", why);
    return std::string(Explain(absl::UnavailableError(all), peer).message());
  };
  EXPECT_EQ(explained("UNAVAILABLE: ipv4:127.0.0.1:7700: Socket closed"),
            "127.0.0.1:7700: cannot connect: ipv4:127.0.0.1:7700: Socket closed; it wants TLS "
            "(--tls-roots), or a client's certificate that it accepts (--tls-cert, --tls-key)");
  EXPECT_THAT(explained("UNKNOWN: ipv4:127.0.0.1:7700: Tls handshake failed: SSL_ERROR_SSL: "
                        "error:0A000086:SSL routines::certificate verify failed"),
              EndsWith("certificate verify failed; its certificate is not valid now, or "
                       "--tls-roots does not name its authority"));
  EXPECT_THAT(explained("UNKNOWN: ipv4:127.0.0.1:7700: Ssl handshake failed: SSL_ERROR_SSL: "
                        "error:0A00010B:SSL routines::wrong version number"),
              EndsWith("wrong version number; the server there speaks plaintext: leave "
                       "--tls-roots, --tls-cert and --tls-key out, or give it a certificate"));
}

TEST(HandlerInventoryTest, AreThoseOfProcessorsThatStay) {
  std::vector<v1::Instance> instances = {Processor("2"), Processor("1"), Processor("2"),
                                         Processor("3"), Processor("4", v1::ROLE_CONTROLLER)};
  instances[3].set_leaving(true);
  const HandlerInventory there(instances);
  EXPECT_THAT(there.VersionsOf("shop"), ElementsAre("1", "2"));
  EXPECT_THAT(there.VersionsOf("bakery"), IsEmpty());
}

}  // namespace
}  // namespace muster::cli
