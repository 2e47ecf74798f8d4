// SPDX-License-Identifier: Apache-2.0
#include "services/controller/count_metrics.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "tests/fakes/controller/controller_fixture.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::controller {
namespace {

using telemetry::Shown;

class CountMetricsTest : public ControllerTest {
 protected:
  CountMetricsTest() {
    Dependencies measured = dependencies();
    measured.metrics = &registry_;
    controller_ = *Controller::Create(Measured(), host_->events(), measured);
  }
  ~CountMetricsTest() override { Stop(); }

  Options Measured() const {
    Options options = Instantly();
    options.partitions = {output_};
    return options;
  }
  // Counts the results of a batch of so many items, and waits until it is complete.
  void Count(int items, const std::vector<v1::ItemResult>& results) {
    OpenBatch(items);
    PutQuietly(results);
    ASSERT_TRUE(controller_->Start().ok());
    host_->AwaitCompletions(1);
    Stop();
  }
  std::optional<double> Duplicates(const std::string& reason) {
    return Shown(registry_, absl::StrCat("muster_duplicates_total{queue=\"shop-in\",reason=\"",
                                         reason, "\"}"));
  }
  static v1::ItemResult PutAt(v1::ItemResult result, absl::Time put) {
    *result.mutable_put() = base::ToProto(put);
    return result;
  }

  telemetry::Registry registry_;
};

// One transaction of each result is rejected; here one more.
TEST_F(CountMetricsTest, CountsWhatTheReportHasCounted) {
  v1::ItemResult rejects = Result(1);
  v1::Rejection* const rejection = rejects.mutable_aggregated()->add_rejections();
  rejection->set_line(12);
  rejection->set_reason("no price");
  Count(3, {Result(0), rejects, DeadLetter(2, "poison")});
  EXPECT_EQ(Shown(registry_, R"(muster_items_total{queue="shop-in",outcome="aggregated"})"), 2);
  EXPECT_EQ(Shown(registry_, R"(muster_items_total{queue="shop-in",outcome="dead_lettered"})"), 1);
  const std::string transactions = R"(muster_transactions_total{queue="shop-in",outcome=)";
  EXPECT_EQ(Shown(registry_, transactions + R"("aggregated"})"), 17);
  EXPECT_EQ(Shown(registry_, transactions + R"("rejected"})"), 3);
  EXPECT_EQ(Shown(registry_, transactions + R"("dead_lettered"})"), 10);
}

// increase() does not see a series begin.
TEST_F(CountMetricsTest, ShowsZeroesBeforeTheFirstEvent) {
  Count(1, {Result(0)});
  EXPECT_EQ(Shown(registry_, R"(muster_items_total{queue="shop-in",outcome="dead_lettered"})"), 0);
  for (const std::string reason : {"redelivered", "repeated"}) EXPECT_EQ(Duplicates(reason), 0);
}

TEST_F(CountMetricsTest, CountsADuplicateAsDroppedAndNothingTwice) {
  Count(2, {Result(0), Result(0), Result(1), Result(1)});
  EXPECT_EQ(Shown(registry_, R"(muster_items_total{queue="shop-in",outcome="aggregated"})"), 2);
  EXPECT_EQ(Duplicates("repeated"), 2);
  EXPECT_EQ(Duplicates("redelivered"), 0);
}

// As after a controller that died between its commit and the deletion.
TEST_F(CountMetricsTest, TellsAResultThatCameAgainFromOneOfAnotherAttempt) {
  OpenBatch(2);
  PutQuietly({Result(0), Result(0)});
  const auto received = *queues_->Receive(output_, {2, absl::Minutes(1)});
  ASSERT_EQ(received.size(), 2U);
  for (const queue::Message& message : received) {
    std::vector<queue::UpdateRequest> given_back(1);
    given_back[0].receipt = message.receipt;
    ASSERT_TRUE(queues_->Update(output_, given_back).ok());
  }
  PutQuietly({Result(1)});
  ASSERT_TRUE(controller_->Start().ok());
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_EQ(Duplicates("redelivered"), 1);
  EXPECT_EQ(Duplicates("repeated"), 0);
}

TEST_F(CountMetricsTest, MeasuresFromThePutOfAnItemUntilItIsCounted) {
  const absl::Time now = clock_.Now();
  Count(4, {PutAt(Result(0), now - absl::Seconds(3)), PutAt(Result(1), now - absl::Seconds(90)),
            PutAt(Result(2), now + absl::Hours(1)),  // a clock that is ahead
            Result(3)});                             // of an older processor
  const std::string bucket = R"(muster_item_latency_seconds_bucket{queue="shop-in",le=)";
  EXPECT_EQ(Shown(registry_, bucket + R"("0.005"})"), 1);
  EXPECT_EQ(Shown(registry_, bucket + R"("5"})"), 2);
  EXPECT_EQ(Shown(registry_, bucket + R"("150"})"), 3);
  EXPECT_EQ(Shown(registry_, R"(muster_item_latency_seconds_count{queue="shop-in"})"), 3);
}

}  // namespace
}  // namespace muster::controller
