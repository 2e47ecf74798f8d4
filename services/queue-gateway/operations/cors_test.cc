// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/cors.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::queue_gateway::operations {
namespace {

using ::testing::_;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

ServiceProperties Rules(std::vector<std::string> origins) {
  ServiceProperties properties;
  properties.cors.push_back(
      {std::move(origins), {"GET", "PUT"}, 60, {"x-ms-*"}, {"x-ms-*", "date"}});
  return properties;
}

http::Request Page(const std::string& method, http::Headers headers) {
  http::Request request;
  request.method = method;
  request.headers = std::move(headers);
  return request;
}

TEST(CorsTest, AnswersABrowserThatAsksFirst) {
  const http::Request request =
      Page("OPTIONS", {{"Origin", "http://a"},
                       {"Access-Control-Request-Method", "PUT"},
                       {"Access-Control-Request-Headers", "X-MS-Version, Date"}});
  const Outcome outcome = Preflight(request, Rules({"http://b", "http://a"}));
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->status, 200);
  EXPECT_THAT(outcome->headers, Contains(Pair("Access-Control-Allow-Origin", "http://a")));
  EXPECT_THAT(outcome->headers, Contains(Pair("Access-Control-Allow-Methods", "PUT")));
  EXPECT_THAT(outcome->headers,
              Contains(Pair("Access-Control-Allow-Headers", "X-MS-Version, Date")));
  EXPECT_THAT(outcome->headers, Contains(Pair("Access-Control-Max-Age", "60")));
}

TEST(CorsTest, RefusesOriginsMethodsAndHeadersWithoutARule) {
  const http::Headers fine = {{"Origin", "http://a"}, {"Access-Control-Request-Method", "PUT"}};
  EXPECT_TRUE(Preflight(Page("OPTIONS", fine), Rules({"*"})).ok());
  EXPECT_EQ(Preflight(Page("OPTIONS", fine), Rules({"http://A"})).error().code,
            protocol::ErrorCode::kCorsPreflightFailure);
  EXPECT_EQ(Preflight(Page("OPTIONS", fine), ServiceProperties()).error().code,
            protocol::ErrorCode::kCorsPreflightFailure);
  http::Headers method = fine, header = fine;
  method[1].second = "DELETE";
  header.emplace_back("Access-Control-Request-Headers", "authorization");
  EXPECT_EQ(Preflight(Page("OPTIONS", method), Rules({"*"})).error().code,
            protocol::ErrorCode::kCorsPreflightFailure);
  EXPECT_EQ(Preflight(Page("OPTIONS", header), Rules({"*"})).error().code,
            protocol::ErrorCode::kCorsPreflightFailure);
  EXPECT_EQ(Preflight(Page("OPTIONS", {}), Rules({"*"})).error().code,
            protocol::ErrorCode::kMissingRequiredHeader);
}

TEST(CorsTest, ShowsAReplyToThePagesOfItsRules) {
  http::Reply reply;
  AddCorsHeaders(Page("GET", {{"Origin", "http://a"}}), Rules({"http://a"}), &reply);
  EXPECT_THAT(reply.headers, Contains(Pair("Access-Control-Allow-Origin", "http://a")));
  EXPECT_THAT(reply.headers, Contains(Pair("Vary", "Origin")));
  http::Reply other;
  AddCorsHeaders(Page("GET", {{"Origin", "http://c"}}), Rules({"http://a"}), &other);
  AddCorsHeaders(Page("DELETE", {{"Origin", "http://a"}}), Rules({"http://a"}), &other);
  AddCorsHeaders(Page("GET", {}), Rules({"*"}), &other);
  EXPECT_THAT(other.headers, IsEmpty());
}

// A page could not see a receipt or a request id by a rule for "x-ms-*": to browsers that is a
// name.
TEST(CorsTest, NamesTheHeadersThatARuleExposesByTheirBeginning) {
  http::Reply reply;
  reply.headers = {{"Server", "s"}, {"X-Ms-Popreceipt", "r"}, {"x-ms-version", "v"}, {"Date", "d"}};
  AddCorsHeaders(Page("PUT", {{"Origin", "http://a"}}), Rules({"http://a"}), &reply);
  EXPECT_THAT(reply.headers,
              Contains(Pair("Access-Control-Expose-Headers", "X-Ms-Popreceipt,x-ms-version")));
  http::Reply none;
  AddCorsHeaders(Page("PUT", {{"Origin", "http://a"}}), Rules({"http://a"}), &none);
  EXPECT_THAT(none.headers, Not(Contains(Pair("Access-Control-Expose-Headers", _))));
}

}  // namespace
}  // namespace muster::queue_gateway::operations
