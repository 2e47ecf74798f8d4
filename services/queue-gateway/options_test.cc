// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/options.h"

#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/base/log.h"
#include "services/queue-gateway/auth/accounts.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::queue_gateway {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kKey[] = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

Options Parsed(const std::string& arguments) {
  Options options;
  CLI::App app;
  AddOptions(&app, &options);
  app.parse(arguments);
  return options;
}

TEST(OptionsTest, TakesAccountsFromTheCommandLine) {
  const Options options =
      Parsed("--account one:" + std::string(kKey) + " --account two:" + kKey + ";three:" + kKey);
  const auto accounts = OpenAccounts(options, base::RealClock());
  ASSERT_TRUE(accounts.ok()) << accounts.status();
  for (const char* name : {"one", "two", "three"}) EXPECT_NE((*accounts)->Find(name), nullptr);
  EXPECT_EQ((*accounts)->Find("devstoreaccount1"), nullptr);
}

TEST(OptionsTest, RefusesAnAccountTwiceAndOneWithoutAKey) {
  const std::string one = "--account one:" + std::string(kKey);
  EXPECT_THAT(OpenAccounts(Parsed(one + " " + one), base::RealClock()).status().message(),
              HasSubstr("twice"));
  EXPECT_TRUE(
      absl::IsInvalidArgument(OpenAccounts(Parsed("--account one"), base::RealClock()).status()));
}

// Everybody knows the key of the development account.
TEST(OptionsTest, HasTheDevelopmentAccountOnLoopbackOnly) {
  EXPECT_NE((*OpenAccounts(Options(), base::RealClock()))->Find("devstoreaccount1"), nullptr);
  EXPECT_THAT(OpenAccounts(Parsed("--listen 0.0.0.0:1"), base::RealClock()).status().message(),
              HasSubstr("--account"));
}

TEST(OptionsTest, WarnsOfThePublishedKeyWhereItIsNamedForOtherMachines) {
  const std::string published =
      " --account dev:" + absl::Base64Escape(auth::DevelopmentAccount().keys.front());
  const base::LogCapture log(base::kWarning);
  EXPECT_TRUE(OpenAccounts(Parsed("--listen 127.0.0.1:1" + published), base::RealClock()).ok());
  EXPECT_TRUE(OpenAccounts(Parsed("--listen 0.0.0.0:1 --account one:" + std::string(kKey)),
                           base::RealClock())
                  .ok());
  EXPECT_THAT(log.lines(), IsEmpty());
  EXPECT_TRUE(OpenAccounts(Parsed("--listen 0.0.0.0:1" + published), base::RealClock()).ok());
  EXPECT_THAT(log.lines(),
              ElementsAre(AllOf(HasSubstr("everybody knows the key"), HasSubstr("account=dev"))));
}

TEST(OptionsTest, TakesNoNumberForAnother) {
  EXPECT_EQ(Parsed("--replicas 3").host.nats.replicas, 3);
  EXPECT_THROW(Parsed("--replicas 03"), CLI::ParseError);
}

TEST(OptionsTest, HasNoTargetsUnlessTheyAreNamed) {
  EXPECT_EQ(Options().targets.per_queue, 0);
  EXPECT_EQ(Options().targets.per_account, 0);
  const Options options = Parsed("--queue-requests 500 --account-requests 20000");
  EXPECT_EQ(options.targets.per_queue, 500);
  EXPECT_EQ(options.targets.per_account, 20'000);
  EXPECT_THROW(Parsed("--queue-requests -1"), CLI::ParseError);
  EXPECT_THROW(Parsed("--queue-requests 1e7"), CLI::ParseError);
}

TEST(OptionsTest, AcceptsTokensOverHttpsOnly) {
  EXPECT_THROW(Parsed("--oauth basic"), CLI::ParseError);
  EXPECT_THROW(Parsed("--oauth full --cert c --key k"), CLI::ParseError);
  EXPECT_EQ(*OpenBearer(Options(), base::RealClock()), nullptr);
  EXPECT_NE(*OpenBearer(Parsed("--oauth basic --cert c --key k"), base::RealClock()), nullptr);
}

TEST(OptionsTest, AsksForAKeySetWhereOthersCanMakeTokens) {
  EXPECT_THAT(
      OpenBearer(Parsed("--oauth basic --cert c --key k --listen 0.0.0.0:1"), base::RealClock())
          .status()
          .message(),
      HasSubstr("--oauth-jwks"));
}

// The keys of an identity provider sign for all its tenants, and anyone may have one.
TEST(OptionsTest, AsksForTheIssuerWhereOthersHaveTokensOfTheirOwn) {
  const std::string exposed =
      "--oauth basic --cert c --key k --listen 0.0.0.0:1 --oauth-jwks no-such-file";
  EXPECT_THAT(OpenBearer(Parsed(exposed), base::RealClock()).status().message(),
              HasSubstr("--oauth-issuer"));
  EXPECT_THAT(
      OpenBearer(Parsed(exposed + " --oauth-issuer https://sts.windows.net/c3/"), base::RealClock())
          .status()
          .message(),
      HasSubstr("no-such-file"));
}

TEST(OptionsTest, TakesIssuersFromTheCommandLine) {
  EXPECT_THAT(Parsed("--oauth-issuer https://a/,https://b --oauth-issuer https://c").issuers,
              ElementsAre("https://a/", "https://b", "https://c"));
}

}  // namespace
}  // namespace muster::queue_gateway
