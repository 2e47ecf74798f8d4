// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/reply.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::queue_gateway::protocol {
namespace {

const absl::Time kTime =
    absl::FromCivil(absl::CivilSecond(2011, 11, 1, 2, 3, 4), absl::UTCTimeZone());

TEST(ReplyTest, WritesDatesAsHttpDoes) {
  EXPECT_EQ(HttpDate(kTime), "Tue, 01 Nov 2011 02:03:04 GMT");
  EXPECT_EQ(HttpDate(absl::InfiniteFuture()), "Fri, 31 Dec 9999 23:59:59 GMT");
}

TEST(ReplyTest, ShowsAnErrorInAHeaderAndInTheBody) {
  const ReplyContext context{"id-1", "2020-02-10", "mine", kTime};
  const http::Reply reply = ErrorReply(OutOfRange("n", "<33>", 1, 32), context);
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(http::HeaderOf(reply.headers, "x-ms-error-code"), "OutOfRangeQueryParameterValue");
  EXPECT_EQ(http::HeaderOf(reply.headers, "content-type"), "application/xml");
  EXPECT_EQ(reply.body,
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error>"
            "<Code>OutOfRangeQueryParameterValue</Code><Message>One of the query parameters "
            "specified in the request URI is outside the permissible range.\nRequestId:id-1\n"
            "Time:2011-11-01T02:03:04.000000Z</Message>"
            "<QueryParameterName>n</QueryParameterName>"
            "<QueryParameterValue>&lt;33&gt;</QueryParameterValue>"
            "<MinimumAllowed>1</MinimumAllowed><MaximumAllowed>32</MaximumAllowed></Error>");
}

TEST(ReplyTest, HasTheHeadersThatEveryReplyHas) {
  http::Reply reply = Empty(204);
  AddStandardHeaders({"id-1", "2020-02-10", "mine", kTime}, &reply);
  EXPECT_EQ(http::HeaderOf(reply.headers, "x-ms-request-id"), "id-1");
  EXPECT_EQ(http::HeaderOf(reply.headers, "x-ms-version"), "2020-02-10");
  EXPECT_EQ(http::HeaderOf(reply.headers, "x-ms-client-request-id"), "mine");
  EXPECT_EQ(http::HeaderOf(reply.headers, "date"), "Tue, 01 Nov 2011 02:03:04 GMT");
}

TEST(ReplyTest, SaysWhenToComeBackWheneverItIsBusy) {
  const ReplyContext context{"id-1", "2020-02-10", "mine", kTime};
  http::Reply busy = ErrorReply(FromStore(absl::ResourceExhaustedError("full")), context);
  AddStandardHeaders(context, &busy);
  EXPECT_EQ(http::HeaderOf(busy.headers, "retry-after"), "1");
  http::Reply told = {503, {{"Retry-After", "7"}}, ""};
  AddStandardHeaders(context, &told);
  EXPECT_THAT(told.headers, testing::Not(testing::Contains(testing::Pair("Retry-After", "1"))));
}

TEST(ReplyTest, NamesEachRequestByAGuid) {
  EXPECT_THAT(NewRequestId(), testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-"
                                                    "[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_NE(NewRequestId(), NewRequestId());
}

}  // namespace
}  // namespace muster::queue_gateway::protocol
