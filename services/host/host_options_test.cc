// SPDX-License-Identifier: Apache-2.0
#include "services/host/host_options.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/host/numbers.h"
#include "services/host/parse_error.h"

namespace muster::host {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Sets a variable for a test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* const name_;
};

class HostOptionsTest : public ::testing::Test {
 protected:
  // Returns the reason for the refusal of the arguments; "" if they are accepted.
  std::string Parse(const std::vector<std::string>& arguments) {
    CLI::App app;
    AddHostOptions(&app, &options_);
    CheckNumbers(&app);
    try {
      app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
      TakeRefusedVariables(&app);
      TakeDefaultMetrics(&app, options_.listen.front(), &options_);
    } catch (const CLI::ParseError& error) {
      std::vector<const char*> words;
      for (const std::string& argument : arguments) words.push_back(argument.c_str());
      return WithVariable(app, error, words);
    }
    return "";
  }

  HostOptions options_{kProcessor};
};

// No bound of CLI11 keeps nan out: --price nan made a cost of nan.
TEST(NumbersTest, TakesNothingForANumberThatIsNone) {
  double price = 1;
  const auto parse = [&price](const std::string& text) -> std::string {
    CLI::App app;
    CLI::App* const command = app.add_subcommand("quote");
    command->add_option("--price", price)->check(CLI::Range(0.0, 1e9));
    CheckNumbers(&app);
    try {
      app.parse(std::vector<std::string>{"--price=" + text, "quote"});
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "";
  };
  for (const std::string text : {"nan", "-nan", "NaN(1)", "inf", "-Infinity", "1,5", "3abc"}) {
    EXPECT_EQ(parse(text), absl::StrCat("--price: '", text, "' is not a number"));
  }
  EXPECT_EQ(parse("1e999"), "--price: 1e999 is out of range");
  EXPECT_THAT(parse("1e10"), HasSubstr("not in range"));
  EXPECT_EQ(price, 1);
  EXPECT_EQ(parse("2.5e3"), "");
  EXPECT_EQ(price, 2500);
}

// The message blamed an option that nobody had given.
TEST_F(HostOptionsTest, BlamesAVariableWhereItsOptionIsNotGiven) {
  const Environment grace("MUSTER_DRAIN_GRACE", "soon");
  EXPECT_THAT(Parse({}), StartsWith("MUSTER_DRAIN_GRACE: 'soon'"));
  EXPECT_THAT(Parse({"--drain-grace=later"}), StartsWith("--drain-grace: 'later'"));
  EXPECT_THAT(Parse({"--drain-grace", "later"}), StartsWith("--drain-grace: 'later'"));
  const Environment plaintext("MUSTER_ALLOW_PLAINTEXT", "maybe");
  EXPECT_THAT(Parse({"--drain-grace", "5s"}), HasSubstr("MUSTER_ALLOW_PLAINTEXT = maybe"));
}

TEST_F(HostOptionsTest, ListensOnTheRolesPortOfThisMachineAlone) {
  EXPECT_THAT(Parse({}), IsEmpty());
  EXPECT_THAT(options_.listen, ElementsAre("127.0.0.1:7701"));
  EXPECT_FALSE(options_.server().tls.has_value());
  EXPECT_FALSE(options_.server().allow_plaintext);
  EXPECT_FALSE(options_.server().allow_any_client);
  EXPECT_EQ(options_.metrics, "127.0.0.1:7791");
  EXPECT_FALSE(options_.allow_plaintext_metrics);
  EXPECT_TRUE(options_.is_on_loopback());
  EXPECT_EQ(options_.nats_url, "nats://127.0.0.1:4222");
  EXPECT_EQ(options_.drain_grace, absl::Seconds(30));
}

TEST_F(HostOptionsTest, HasANameThatNoOtherInstanceHas) {
  EXPECT_THAT(options_.instance, StartsWith("processor-"));
  EXPECT_NE(options_.instance, HostOptions(kProcessor).instance);
}

TEST_F(HostOptionsTest, TakesAllThatAServerCanBeTold) {
  EXPECT_THAT(Parse({"--listen", "[::]:7", "--listen", "localhost:8", "--tls-cert", "c.pem",
                     "--tls-key", "k.pem", "--tls-roots", "r.pem", "--policy", "p.yaml",
                     "--allow-plaintext", "--allow-any-client"}),
              IsEmpty());
  const rpc::ServerOptions server = options_.server();
  EXPECT_THAT(server.addresses, ElementsAre("[::]:7", "localhost:8"));
  ASSERT_TRUE(server.tls.has_value());
  EXPECT_EQ(server.tls->certificate, "c.pem");
  EXPECT_EQ(server.tls->key, "k.pem");
  EXPECT_EQ(server.tls->roots, "r.pem");
  EXPECT_EQ(server.policy_file, "p.yaml");
  EXPECT_TRUE(server.allow_plaintext);
  EXPECT_TRUE(server.allow_any_client);
}

TEST_F(HostOptionsTest, TakesAllThatStoresCanBeTold) {
  EXPECT_THAT(Parse({"--nats",
                     "tls://a:1,tls://b:2",
                     "--nats-credentials",
                     "me.creds",
                     "--nats-ca",
                     "ca.pem",
                     "--nats-cert",
                     "c.pem",
                     "--nats-key",
                     "k.pem",
                     "--bucket",
                     "test",
                     "--replicas",
                     "3",
                     "--lease",
                     "1m30s",
                     "--ack-survives",
                     "power",
                     "--data-dir",
                     "/data",
                     "--account",
                     "acme",
                     "--instance",
                     "p-1",
                     "--drain-grace",
                     "2m",
                     "--log-level",
                     "debug",
                     "--log-format",
                     "json"}),
              IsEmpty());
  EXPECT_EQ(options_.nats_url, "tls://a:1,tls://b:2");
  EXPECT_EQ(options_.nats.connection.credentials_file, "me.creds");
  EXPECT_EQ(options_.nats.connection.ca_file, "ca.pem");
  EXPECT_EQ(options_.nats.connection.certificate_file, "c.pem");
  EXPECT_EQ(options_.nats.connection.key_file, "k.pem");
  EXPECT_EQ(options_.nats.bucket, "test");
  EXPECT_EQ(options_.nats.replicas, 3);
  EXPECT_EQ(options_.nats.lease, absl::Seconds(90));
  EXPECT_EQ(options_.nats.ack_survives, queue::Survives::kPower);
  EXPECT_EQ(options_.data_dir, "/data");
  EXPECT_EQ(options_.account, "acme");
  EXPECT_EQ(options_.instance, "p-1");
  EXPECT_EQ(options_.drain_grace, absl::Minutes(2));
  EXPECT_EQ(options_.log_level, base::kDebug);
  EXPECT_EQ(options_.log_format, base::LogFormat::kJson);
}

TEST_F(HostOptionsTest, NeedsTheSchemeOfANatsServer) {
  for (const char* const url : {"localhost:4222", "me:secret@localhost:4222", "rocksdb:/data"}) {
    const std::string refused = Parse({"--nats", url});
    EXPECT_THAT(refused, HasSubstr("nats://HOST:PORT, or tls://HOST:PORT"));
    EXPECT_THAT(refused, Not(HasSubstr("secret")));
  }
}

TEST_F(HostOptionsTest, TakesTheEnvironmentWhereTheCommandLineIsSilent) {
  const Environment listen("MUSTER_LISTEN", "localhost:1,localhost:2"), lease("MUSTER_LEASE", "5s"),
      survives("MUSTER_ACK_SURVIVES", "power"), plaintext("MUSTER_ALLOW_PLAINTEXT", "true"),
      account("MUSTER_ACCOUNT", "acme");
  EXPECT_THAT(Parse({"--account", "other"}), IsEmpty());
  EXPECT_THAT(options_.listen, ElementsAre("localhost:1", "localhost:2"));
  EXPECT_EQ(options_.nats.lease, absl::Seconds(5));
  EXPECT_EQ(options_.nats.ack_survives, queue::Survives::kPower);
  EXPECT_TRUE(options_.allow_plaintext);
  EXPECT_EQ(options_.account, "other");
}

TEST_F(HostOptionsTest, TellAnotherRoleOfTheSameMesh) {
  const std::vector<std::string> shared = {"--nats",
                                           "tls://a:1",
                                           "--nats-credentials",
                                           "me.creds",
                                           "--nats-ca",
                                           "ca.pem",
                                           "--nats-cert",
                                           "n.pem",
                                           "--nats-key",
                                           "k.pem",
                                           "--bucket",
                                           "test",
                                           "--replicas",
                                           "3",
                                           "--lease",
                                           "1m30s",
                                           "--tls-cert",
                                           "c.pem",
                                           "--tls-key",
                                           "k.pem",
                                           "--tls-roots",
                                           "r.pem",
                                           "--account",
                                           "acme",
                                           "--ack-survives",
                                           "power",
                                           "--log-level",
                                           "warning",
                                           "--log-format",
                                           "json",
                                           "--allow-plaintext",
                                           "--allow-any-client"};
  std::vector<std::string> arguments = {"--listen",   "localhost:1", "--advertise", "here:1",
                                        "--instance", "p-1",         "--data-dir",  "/data",
                                        "--policy",   "p.yaml"};
  arguments.insert(arguments.end(), shared.begin(), shared.end());
  ASSERT_THAT(Parse(arguments), IsEmpty());
  const auto told = EnvironmentOf(options_);
  std::vector<std::unique_ptr<Environment>> variables;
  for (const auto& [name, value] : told) {
    variables.push_back(std::make_unique<Environment>(name.c_str(), value.c_str()));
  }
  options_ = HostOptions(kProcessor);
  ASSERT_THAT(Parse({}), IsEmpty());
  EXPECT_EQ(EnvironmentOf(options_), told);
  EXPECT_EQ(told.size(), 19u) << "all that is shared, and nothing else";
  // A port that this instance has, the other one cannot have.
  for (const char* port : {"MUSTER_HEALTH", "MUSTER_METRICS"}) {
    EXPECT_THAT(told, Contains(std::pair(std::string(port), std::string())));
  }
  EXPECT_EQ(options_.nats.connection.credentials_file, "me.creds");
  EXPECT_EQ(options_.nats.lease, absl::Seconds(90));
  EXPECT_EQ(options_.nats.ack_survives, queue::Survives::kPower);
  EXPECT_EQ(options_.tls.roots, "r.pem");
  EXPECT_EQ(options_.log_level, base::kWarning);
  EXPECT_EQ(options_.log_format, base::LogFormat::kJson);
  EXPECT_TRUE(options_.allow_plaintext);
  EXPECT_THAT(options_.listen, ElementsAre("127.0.0.1:7701"));
  EXPECT_EQ(options_.data_dir, ".muster");
  EXPECT_THAT(options_.instance, StartsWith("processor-"));
}

TEST_F(HostOptionsTest, ShowsMetricsOnLoopbackNinetyPortsAboveItsOwn) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"localhost:8000", "127.0.0.1:8090"},
      {"0.0.0.0:7700", "127.0.0.1:7790"},
      {"[::1]:7700", "[::1]:7790"},
      {"[::]:7700", "127.0.0.1:7790"},
      {"host-1:65445", "127.0.0.1:65535"},
      {"127.0.0.1:0", ""},
      {"127.0.0.1:65446", ""}};
  for (const auto& [listen, metrics] : cases) {
    options_ = HostOptions(kProcessor);
    EXPECT_THAT(Parse({"--listen", listen, "--listen", "localhost:1"}), IsEmpty());
    EXPECT_EQ(options_.metrics, metrics) << listen;
    EXPECT_EQ(options_.metrics_are_default, *metrics != '\0') << listen;
  }
}

TEST_F(HostOptionsTest, ShowsMetricsWhereItIsToldOrNowhere) {
  const auto told = [this](const std::vector<std::string>& arguments) {
    options_ = HostOptions(kProcessor);
    EXPECT_THAT(Parse(arguments), IsEmpty());
    EXPECT_FALSE(options_.metrics_are_default);
    return options_.metrics;
  };
  EXPECT_EQ(told({"--metrics", "127.0.0.1:9"}), "127.0.0.1:9");
  EXPECT_EQ(told({"--metrics", ""}), "");
  EXPECT_EQ(told({"--metrics", "", "--instance", "p-1"}), "");
  {
    const Environment nowhere("MUSTER_METRICS", "");
    EXPECT_EQ(told({}), "");
    EXPECT_EQ(told({"--metrics", "127.0.0.1:9"}), "127.0.0.1:9");
  }
  const Environment elsewhere("MUSTER_METRICS", "127.0.0.1:8");
  EXPECT_EQ(told({}), "127.0.0.1:8");
  EXPECT_EQ(told({"--metrics", ""}), "");
  EXPECT_THAT(Parse({"--metrics", "9"}), HasSubstr("--metrics"));
}

TEST_F(HostOptionsTest, RefusesWhatIsWrongAndNamesIt) {
  EXPECT_THAT(Parse({"--listen", "7701"}), HasSubstr("--listen"));
  EXPECT_THAT(Parse({"--lease", "30"}), HasSubstr("--lease"));
  EXPECT_THAT(Parse({"--lease", "10ms"}), AllOf(HasSubstr("--lease"), HasSubstr("1s to 12h")));
  EXPECT_THAT(Parse({"--replicas", "6"}), HasSubstr("--replicas"));
  EXPECT_THAT(Parse({"--ack-survives", "fire"}), HasSubstr("--ack-survives"));
  EXPECT_THAT(Parse({"--log-level", "loud"}),
              AllOf(HasSubstr("--log-level"), HasSubstr("debug, info, warning, error")));
  EXPECT_THAT(Parse({"--account", "A B"}), HasSubstr("--account"));
  EXPECT_THAT(Parse({"--instance", "p.1"}), HasSubstr("--instance"));
  EXPECT_THAT(Parse({"--tls-cert", "c.pem"}), HasSubstr("--tls-key"));
  const Environment lease("MUSTER_LEASE", "soon");
  EXPECT_THAT(Parse({}), HasSubstr("soon"));
}

TEST_F(HostOptionsTest, TakesNoNumberOfTheEnvironmentForAnother) {
  const Environment replicas("MUSTER_REPLICAS", "03");
  EXPECT_THAT(Parse({}), HasSubstr("03 begins with a zero"));
}

}  // namespace
}  // namespace muster::host
