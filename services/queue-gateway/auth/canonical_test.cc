// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/canonical.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fakes/queue-gateway/auth/signed_requests.h"

namespace muster::queue_gateway::auth {
namespace {

using ::testing::ElementsAre;
using testing::Fields;
using ::testing::HasSubstr;
using testing::RequestOf;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::vector<std::string> HeaderForms(Fields headers) {
  headers.emplace_back("x-ms-version", "2025-05-05");
  return CanonicalHeaders(RequestOf("GET", "/", {}, std::move(headers)));
}

TEST(CanonicalTest, SortsHeadersByNameAndLeavesOutOthers) {
  EXPECT_THAT(
      HeaderForms({{"x-ms-date", "d"}, {"x-msx", "1"}, {"user-agent", "u"}, {"x-ms-a", "A"}}),
      ElementsAre("x-ms-a:A\nx-ms-date:d\nx-ms-version:2025-05-05\n"));
}

TEST(CanonicalTest, JoinsTheValuesOfARepeatedHeaderInTheirOrder) {
  EXPECT_THAT(HeaderForms({{"x-ms-a", "2"}, {"x-ms-b", "x"}, {"x-ms-a", "1"}}),
              ElementsAre("x-ms-a:2,1\nx-ms-b:x\nx-ms-version:2025-05-05\n"));
}

TEST(CanonicalTest, ReadsAFoldedHeaderAsOneLine) {
  EXPECT_THAT(HeaderForms({{"x-ms-a", "one \r\n\t two\n three"}}),
              ElementsAre("x-ms-a:one two three\nx-ms-version:2025-05-05\n"));
}

TEST(CanonicalTest, KeepsBlanksInAValueOrMakesThemOne) {
  EXPECT_THAT(HeaderForms({{"x-ms-a", "one  two\t three"}}),
              ElementsAre("x-ms-a:one  two\t three\nx-ms-version:2025-05-05\n",
                          "x-ms-a:one two three\nx-ms-version:2025-05-05\n"));
}

TEST(CanonicalTest, HasEmptyHeadersFromTheVersionThatSignsThem) {
  const auto forms = [](const char* version) {
    return CanonicalHeaders(
        RequestOf("GET", "/", {}, {{"x-ms-meta-a", ""}, {"x-ms-version", version}}));
  };
  EXPECT_THAT(forms("2016-05-31"), ElementsAre("x-ms-meta-a:\nx-ms-version:2016-05-31\n"));
  EXPECT_THAT(forms("2015-12-11"), ElementsAre("x-ms-version:2015-12-11\n"));
}

// The order in which the current clients sort, which was asked of them with these names.
TEST(CanonicalTest, CollatesNamesAsClientsDo) {
  std::vector<std::string> names = {"x-ms-meta-ab", "x-ms-meta-a-c", "x-ms-meta-a_b",
                                    "x-ms-meta-a1", "x-ms-meta-a-b", "x-ms-metaa",
                                    "x-ms-meta-a",  "x-ms-meta-a--b"};
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) { return CollatesBefore(a, b); });
  EXPECT_THAT(names,
              ElementsAre("x-ms-metaa", "x-ms-meta-a", "x-ms-meta-a_b", "x-ms-meta-a1",
                          "x-ms-meta-ab", "x-ms-meta-a-b", "x-ms-meta-a--b", "x-ms-meta-a-c"));
  for (const std::string& name : names) EXPECT_FALSE(CollatesBefore(name, name)) << name;
}

TEST(CanonicalTest, TakesBothOrdersOfNamesWithDashes) {
  EXPECT_THAT(HeaderForms({{"x-ms-meta-ab", "1"}, {"x-ms-meta-a-c", "2"}}),
              ElementsAre("x-ms-meta-a-c:2\nx-ms-meta-ab:1\nx-ms-version:2025-05-05\n",
                          "x-ms-meta-ab:1\nx-ms-meta-a-c:2\nx-ms-version:2025-05-05\n"));
}

std::string Resource(const std::string& path, Fields query) {
  const auto forms = CanonicalResources(RequestOf("GET", path, std::move(query), {}), true);
  EXPECT_THAT(forms, SizeIs(1));
  return forms.front();
}

TEST(CanonicalTest, KeepsThePathAsItWasSent) {
  EXPECT_EQ(Resource("/sally/q/messages/a%2Fb%20c", {}), "/sally/sally/q/messages/a%2Fb%20c");
  EXPECT_EQ(Resource("/sally/q/messages/a%2fb", {}), "/sally/sally/q/messages/a%2fb");
  EXPECT_EQ(Resource("//q", {}), "/sally//q");
  EXPECT_EQ(Resource("", {}), "/sally/");
}

TEST(CanonicalTest, SortsParametersByTheirLowerCaseNames) {
  EXPECT_EQ(Resource("/", {{"b", "2"}, {"A", "X y"}, {"comp", "list"}, {"empty", ""}}),
            "/sally/\na:X y\nb:2\ncomp:list\nempty:");
}

TEST(CanonicalTest, JoinsTheValuesOfARepeatedParameterSorted) {
  EXPECT_EQ(Resource("/", {{"a", "2"}, {"A", "1"}, {"a", "3"}}), "/sally/\na:1,2,3");
}

TEST(CanonicalTest, HasOnlyCompInTheLiteForm) {
  EXPECT_THAT(CanonicalResources(RequestOf("GET", "/q", {{"a", "1"}, {"Comp", "acl"}}, {}), false),
              ElementsAre("/sally/q?comp=acl"));
  EXPECT_THAT(CanonicalResources(RequestOf("GET", "/q", {{"a", "1"}}, {}), false),
              ElementsAre("/sally/q"));
}

TEST(CanonicalTest, TakesTheSecondarysPathWithItsSuffixAndWithout) {
  SignedRequest request = RequestOf("GET", "/sally-secondary/q", {}, {});
  request.is_secondary = true;
  EXPECT_THAT(CanonicalResources(request, true),
              ElementsAre("/sally/sally-secondary/q", "/sally/sally/q"));
  request.raw_path = "/q";  // the host has the account
  EXPECT_THAT(CanonicalResources(request, true), ElementsAre("/sally/q"));
  request.raw_path = "/sally-secondary/q";  // a queue of that name, in a primary location
  request.is_secondary = false;
  EXPECT_THAT(CanonicalResources(request, true), ElementsAre("/sally/sally-secondary/q"));
}

TEST(CanonicalTest, HasTheLengthOfZeroByItsVersion) {
  const auto lines = [](const char* version, const char* length) {
    return SignedLines(
        RequestOf("PUT", "/", {}, {{"content-length", length}, {"x-ms-version", version}}));
  };
  EXPECT_THAT(lines("2015-02-21", "0"), ElementsAre("\n\n\n\n\n\n\n\n\n\n\n"));
  EXPECT_THAT(lines("2014-02-14", "0"), ElementsAre("\n\n0\n\n\n\n\n\n\n\n\n"));
  EXPECT_THAT(lines("2025-05-05", "17"), ElementsAre("\n\n17\n\n\n\n\n\n\n\n\n"));
}

TEST(CanonicalTest, TakesLanguageAndEncodingInBothOrders) {
  EXPECT_THAT(SignedLines(RequestOf("PUT", "/", {},
                                    {{"content-language", "de"}, {"content-encoding", "gzip"}})),
              ElementsAre("de\ngzip\n\n\n\n\n\n\n\n\n\n", "gzip\nde\n\n\n\n\n\n\n\n\n\n"));
}

TEST(CanonicalTest, TakesAnEmptyDateWhereXMsDateSaysIt) {
  EXPECT_THAT(LiteLines(RequestOf("PUT", "/", {}, {{"date", "D"}, {"x-ms-date", "X"}})),
              UnorderedElementsAre("\n\nD\n", "\n\n\n"));
  EXPECT_THAT(LiteLines(RequestOf("PUT", "/", {}, {{"date", "D"}})), ElementsAre("\n\nD\n"));
}

// "a=x%0Ab:y" and "a=x&b=y" would be signed alike.
TEST(CanonicalTest, RefusesParametersThatLookLikeOthers) {
  const auto check = [](Fields query) {
    return CheckUnambiguous(RequestOf("GET", "/", std::move(query), {}));
  };
  EXPECT_TRUE(check({{"a", "x:y/z ü"}, {"b", ""}}).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(check({{"a", "x\nb:y"}})));
  EXPECT_TRUE(absl::IsUnauthenticated(check({{"a\nb", "y"}})));
  EXPECT_TRUE(absl::IsUnauthenticated(check({{"a:x", "y"}})));
  EXPECT_TRUE(absl::IsUnauthenticated(check({{"a", std::string("x\0", 2)}})));
}

TEST(CanonicalTest, RefusesASecondHeaderThatDecidesWhatIsSigned) {
  for (const char* const name : {"content-length", "date", "x-ms-date", "x-ms-version"}) {
    const auto status = CheckUnambiguous(RequestOf("GET", "/", {}, {{name, "1"}, {name, "1"}}));
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

}  // namespace
}  // namespace muster::queue_gateway::auth
