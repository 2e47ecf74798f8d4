// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/quote_proto.h"

#include "gtest/gtest.h"
#include "muster/base/proto_time.h"

namespace muster::scaling::policy {
namespace {

TEST(SimulateTest, CarriesTheQuestion) {
  const QuotedWork asked = {7, absl::Milliseconds(1500), 12.5};
  const QuotedWork work = FromProto(ToProto(asked));
  EXPECT_EQ(work.items, 7);
  EXPECT_EQ(work.sla, absl::Milliseconds(1500));
  EXPECT_EQ(work.items_per_second, 12.5);
  const QuotedWork bare = FromProto(v1::SimulateRequest());
  EXPECT_EQ(bare.items, 0);
  EXPECT_EQ(bare.sla, std::nullopt);
  EXPECT_EQ(bare.items_per_second, std::nullopt);
}

// The conversion must keep an invalid speed, so that Quote can refuse it.
TEST(SimulateTest, CarriesASpeedThatIsNone) {
  v1::SimulateRequest request;
  request.set_items_per_second(-1);
  EXPECT_EQ(FromProto(request).items_per_second, -1);
}

TEST(SimulateTest, CarriesTheAnswer) {
  Quotation quotation;
  quotation.feasible = false;
  quotation.finish = absl::FromUnixSeconds(390);
  quotation.deadline = absl::FromUnixSeconds(300);
  quotation.late_by = absl::Seconds(90);
  quotation.replicas_now = 1;
  quotation.replicas = 2;
  quotation.needs = 3;
  quotation.max = 4;
  quotation.replica_seconds = 780.5;
  quotation.shortest_sla = absl::Seconds(390);
  quotation.explanation = "Done too late.";
  const v1::SimulateResponse response = ToProto("billing", quotation);
  EXPECT_EQ(response.target(), "billing");
  EXPECT_FALSE(response.feasible());
  EXPECT_EQ(base::FromProto(response.finish()), quotation.finish);
  EXPECT_EQ(base::FromProto(response.deadline()), quotation.deadline);
  EXPECT_EQ(base::FromProto(response.late_by()), quotation.late_by);
  EXPECT_EQ(response.replicas_now(), 1);
  EXPECT_EQ(response.replicas(), 2);
  EXPECT_EQ(response.needs(), 3);
  EXPECT_EQ(response.max(), 4);
  EXPECT_EQ(response.replica_seconds(), 780.5);
  EXPECT_EQ(base::FromProto(response.shortest_sla()), absl::Seconds(390));
  EXPECT_EQ(response.explanation(), "Done too late.");

  const v1::QuoteResponse quote = QuoteOf(response, 7);
  EXPECT_EQ(quote.items(), 7);
  EXPECT_FALSE(quote.feasible());
  EXPECT_EQ(base::FromProto(quote.finish()), quotation.finish);
  EXPECT_EQ(base::FromProto(quote.deadline()), quotation.deadline);
  EXPECT_EQ(base::FromProto(quote.late_by()), quotation.late_by);
  EXPECT_EQ(quote.replicas_now(), 1);
  EXPECT_EQ(quote.replicas(), 2);
  EXPECT_EQ(quote.needs(), 3);
  EXPECT_EQ(quote.max(), 4);
  EXPECT_EQ(quote.replica_seconds(), 780.5);
  EXPECT_EQ(base::FromProto(quote.shortest_sla()), absl::Seconds(390));
  EXPECT_EQ(quote.explanation(), "Done too late.");
}

TEST(SimulateTest, LeavesUnsetWhatNeverIs) {
  Quotation quotation;
  quotation.finish = absl::InfiniteFuture();
  quotation.late_by = absl::InfiniteDuration();
  const v1::SimulateResponse response = ToProto("billing", quotation);
  EXPECT_FALSE(response.has_finish());
  EXPECT_FALSE(response.has_late_by());
  EXPECT_FALSE(response.has_shortest_sla());
  quotation.late_by = absl::ZeroDuration();
  EXPECT_TRUE(ToProto("billing", quotation).has_late_by());
}

}  // namespace
}  // namespace muster::scaling::policy
