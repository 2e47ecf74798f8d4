// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/policy.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/rpc/limits.h"

namespace muster::rpc {
namespace {

using ::testing::HasSubstr;

constexpr char kPolicy[] = R"(
roles:
  - name: operators
    members: ["cn:ops", "san:ops.example.org"]
    methods: ["muster.v1.QueueService/*", "muster.v1.*/Get*"]
  - name: readers
    members: [authenticated]
    methods: ["muster.v1.ReportService/*"]
  - name: this-machine
    members: [loopback]
    methods: ["*"]
)";

Policy Parsed(const std::string& text) {
  absl::StatusOr<Policy> policy = ParsePolicy(text, "policy.yaml");
  EXPECT_TRUE(policy.ok()) << policy.status();
  return policy.value_or(Policy());
}

std::string WhyNoPolicy(const std::string& text) {
  const absl::StatusOr<Policy> policy = ParsePolicy(text, "policy.yaml");
  EXPECT_EQ(policy.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(policy.status().message());
}

Caller Named(const std::string& common_name) {
  Caller caller;
  caller.common_name = common_name;
  return caller;
}

// Returns a policy with one role, which has one member and one method.
std::string OneRole(const std::string& member, const std::string& method) {
  return "roles:\n  - name: r\n    members: [\"" + member + "\"]\n    methods: [\"" + method +
         "\"]\n";
}

TEST(Policy, LetsARoleCallItsMethods) {
  const Policy policy = Parsed(kPolicy);
  EXPECT_TRUE(policy.Check(Named("ops"), "muster.v1.QueueService/PurgeQueue").ok());
  EXPECT_TRUE(policy.Check(Named("ops"), "muster.v1.BatchService/GetBatch").ok());
  EXPECT_TRUE(policy.Check(Named("ann"), "muster.v1.ReportService/GetReport").ok());
}

TEST(Policy, NamesTheMethodThatItDenies) {
  const absl::Status denied =
      Parsed(kPolicy).Check(Named("ann"), "muster.v1.QueueService/PurgeQueue");
  EXPECT_EQ(denied.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(denied.message(),
            "the server's policy does not allow muster.v1.QueueService/PurgeQueue to cn:ann");
}

TEST(Policy, KnowsACallerByAlternativeNamesToo) {
  Caller caller = Named("somebody");
  caller.alternative_names = {"10.0.0.1", "ops.example.org"};
  EXPECT_TRUE(Parsed(kPolicy).Check(caller, "muster.v1.QueueService/PurgeQueue").ok());
}

TEST(Policy, DoesNotTakeANameOfOneKindForOneOfTheOther) {
  Caller caller;
  caller.alternative_names = {"ops"};
  EXPECT_FALSE(Parsed(kPolicy).Check(caller, "muster.v1.QueueService/PurgeQueue").ok());
}

TEST(Policy, DeniesEverythingToACallerWithoutCertificateFromElsewhere) {
  const absl::Status denied = Parsed(kPolicy).Check(Caller(), "muster.v1.ReportService/GetReport");
  EXPECT_THAT(denied.message(), HasSubstr("a caller without a certificate"));
}

TEST(Policy, LetsLoopbackCallWhatItsRoleSays) {
  Caller caller;
  caller.loopback = true;
  EXPECT_TRUE(Parsed(kPolicy).Check(caller, "muster.v1.QueueService/PurgeQueue").ok());
}

TEST(Policy, LetsEverybodyAskForHealth) {
  EXPECT_TRUE(Parsed("roles: []").Check(Caller(), "grpc.health.v1.Health/Check").ok());
  EXPECT_FALSE(Parsed("roles: []").Check(Caller(), "grpc.health.v1.Healthy/Check").ok());
}

TEST(Policy, MatchesStarsAnywhereInAMethod) {
  const auto allows = [](const std::string& glob, const std::string& method) {
    return Parsed(OneRole("cn:x", glob)).Check(Named("x"), method).ok();
  };
  EXPECT_TRUE(allows("a.B/C", "a.B/C"));
  EXPECT_FALSE(allows("a.B/C", "a.B/CC"));
  EXPECT_TRUE(allows("a.*/*", "a.B/C"));
  EXPECT_TRUE(allows("*/Get*s", "a.B/GetStatss"));
  EXPECT_FALSE(allows("*/Get*s", "a.B/GetStat"));
  EXPECT_TRUE(allows("a.B/***", "a.B/"));
}

TEST(Policy, TakesNoLongForAPatternOfManyStars) {
  std::string stars;
  for (int i = 0; i < 500; ++i) stars += "*a";
  EXPECT_FALSE(
      Parsed(OneRole("cn:x", stars + "/b")).Check(Named("x"), std::string(20000, 'a')).ok());
}

TEST(PolicyFile, SaysWhereItIsWrong) {
  EXPECT_THAT(WhyNoPolicy("role: []\n"), HasSubstr("policy.yaml:1:1: unknown key 'role'"));
  EXPECT_THAT(WhyNoPolicy("roles: []\nroles: []\n"),
              HasSubstr("policy.yaml:2:1: the key 'roles' is"));
  EXPECT_THAT(WhyNoPolicy("roles:\n  - name: r\n    members: [loopback]\n"),
              HasSubstr("the key 'methods' is missing"));
  EXPECT_THAT(WhyNoPolicy(OneRole("ops", "*")), HasSubstr("policy.yaml:3:15: 'ops' is no member"));
  EXPECT_THAT(WhyNoPolicy(OneRole("cn:", "*")), HasSubstr("'cn:' is no member"));
  EXPECT_THAT(WhyNoPolicy(OneRole("cn:x", "QueueService")), HasSubstr("names no methods"));
  EXPECT_THAT(WhyNoPolicy(OneRole("cn:x", "/muster.v1.X/Y")), HasSubstr("names no methods"));
  EXPECT_THAT(WhyNoPolicy("roles: 7\n"), HasSubstr("roles must be a list"));
  EXPECT_THAT(WhyNoPolicy("roles: [\n"), HasSubstr("not YAML"));
  EXPECT_THAT(WhyNoPolicy(""), HasSubstr("policy.yaml:1:1: must be"));
  EXPECT_THAT(WhyNoPolicy("roles: []\n---\nroles: []\n"), HasSubstr("one YAML document"));
  EXPECT_THAT(WhyNoPolicy("[1, 2]"), HasSubstr("must be a map"));
  EXPECT_THAT(WhyNoPolicy(std::string(kMaxPolicyBytes + 1, '#')), HasSubstr("more than"));
}

TEST(PolicyFile, ThatIsNotThereIsNamedWithTheReason) {
  const absl::StatusOr<Policy> policy = LoadPolicy("/nowhere/policy.yaml");
  EXPECT_EQ(policy.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(policy.status().message(),
            "cannot read the policy '/nowhere/policy.yaml': No such file or directory");
}

}  // namespace
}  // namespace muster::rpc
