// SPDX-License-Identifier: Apache-2.0
#include "services/host/measured_queues.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::host {
namespace {

using telemetry::Shown;

class MeasuredQueuesTest : public ::testing::Test {
 protected:
  MeasuredQueuesTest() {
    queue::rocksdb::Options options;
    options.clock = &clock_;
    measured_ = std::make_unique<MeasuredQueues>(
        *queue::rocksdb::RocksDbQueueStore::Open(dir_ / "queues", options), &registry_, &clock_);
    EXPECT_TRUE(measured_->CreateQueue(queue_, {}).ok());
  }

  void Put() {
    queue::NewMessage message;
    message.body = "x";
    EXPECT_TRUE(measured_->Put(queue_, {{message}}).ok());
  }
  std::vector<queue::Message> Receive() {
    return *measured_->Receive(queue_, {1, absl::Minutes(1)});
  }
  double Calls(const std::string& operation, bool useful) {
    return Shown(registry_,
                 absl::StrCat("muster_storage_transactions_total{queue=\"retail-in\",operation=\"",
                              operation, "\",useful=\"", useful ? "true" : "false", "\"}"))
        .value_or(0);
  }

  std::optional<double> Redeliveries(const std::string& reason) {
    return Shown(registry_, absl::StrCat("muster_redeliveries_total{queue=\"retail-in\",reason=\"",
                                         reason, "\"}"));
  }
  std::optional<double> DeadLetters(const std::string& queue, const std::string& reason) {
    return Shown(registry_, absl::StrCat("muster_dead_letters_total{queue=\"", queue,
                                         "\",reason=\"", reason, "\"}"));
  }

  base::FakeClock clock_;
  telemetry::Registry registry_;
  const os::TempDir dir_;
  const queue::QueueId queue_{"acme", "retail-in-3"};
  std::unique_ptr<MeasuredQueues> measured_;
};

TEST_F(MeasuredQueuesTest, CountsTheCallsOfALogicalQueue) {
  Put();
  EXPECT_EQ(Receive().size(), 1U);
  EXPECT_TRUE(Receive().empty());
  EXPECT_EQ(Calls("put", true), 1);
  EXPECT_EQ(Calls("receive", true), 1);
  EXPECT_EQ(Calls("receive", false), 1) << "it looked at an empty queue";
}

TEST_F(MeasuredQueuesTest, CountsACallThatServesSeveralQueuesForEachOfThem) {
  const queue::QueueId other{"acme", "orders-in"}, missing{"acme", "missing-in"};
  ASSERT_TRUE(measured_->CreateQueue(other, {}).ok());
  const std::vector<queue::NewMessage> messages(1);
  const std::vector<queue::ForQueue<queue::NewMessage>> puts = {
      {queue_, messages}, {missing, messages}, {other, messages}};
  EXPECT_TRUE(measured_->PutEach(puts)[0].ok());
  std::vector<queue::Receipt> receipts = {Receive().front().receipt};
  const std::vector<queue::ForQueue<queue::Receipt>> deletes = {{missing, receipts},
                                                                {queue_, receipts}};
  EXPECT_TRUE(measured_->DeleteEach(deletes)[1].ok());
  const auto calls = [this](const std::string& labels) {
    return Shown(registry_, absl::StrCat("muster_storage_transactions_total{", labels, "}"));
  };
  EXPECT_EQ(calls("queue=\"retail-in\",operation=\"put\",useful=\"true\""), 1);
  EXPECT_EQ(calls("queue=\"orders-in\",operation=\"put\",useful=\"true\""), 1);
  EXPECT_EQ(calls("queue=\"missing-in\",operation=\"put\",useful=\"false\""), 1);
  EXPECT_EQ(calls("queue=\"retail-in\",operation=\"delete\",useful=\"true\""), 1);
  const auto sent = [this](const std::string& queue, const std::string& error) {
    return Shown(registry_, absl::StrCat("messaging_client_sent_messages_total{"
                                         "messaging_destination_name=\"",
                                         queue,
                                         "\",messaging_operation_name=\"send\","
                                         "messaging_system=\"muster\",error_type=\"",
                                         error, "\"}"));
  };
  EXPECT_EQ(sent("orders-in", ""), 1);
  EXPECT_EQ(sent("missing-in", "NOT_FOUND"), 1);
}

TEST_F(MeasuredQueuesTest, TellsOfMessagesByTheConventionsOfOpenTelemetry) {
  const auto shown = [this](const std::string& metric, const std::string& operation) {
    return Shown(registry_,
                 absl::StrCat("messaging_client_", metric,
                              "{messaging_destination_name=\"retail-in\","
                              "messaging_operation_name=\"",
                              operation, "\",messaging_system=\"muster\",error_type=\"\"}"))
        .value_or(0);
  };
  EXPECT_TRUE(measured_->Put(queue_, std::vector<queue::NewMessage>(3)).ok());
  EXPECT_EQ(shown("sent_messages_total", "send"), 3);
  EXPECT_EQ(shown("operation_duration_seconds_count", "send"), 1) << "they went together";
  const std::vector<queue::Message> received = *measured_->Receive(queue_, {2, absl::Minutes(1)});
  EXPECT_EQ(shown("consumed_messages_total", "receive"), 2);
  const std::vector<queue::Receipt> done = {received[0].receipt};
  EXPECT_TRUE(measured_->Delete(queue_, done).ok());
  std::vector<queue::DeadLetterRequest> given_up(1);
  given_up[0].receipt = received[1].receipt;
  EXPECT_TRUE(measured_->DeadLetter(queue_, given_up).ok());
  EXPECT_EQ(shown("operation_duration_seconds_count", "settle"), 2);
  EXPECT_FALSE(measured_->Put({"acme", "gone-in-0"}, std::vector<queue::NewMessage>(2)).ok());
  EXPECT_EQ(Shown(registry_,
                  "messaging_client_sent_messages_total{messaging_destination_name=\"gone-in\","
                  "messaging_operation_name=\"send\",messaging_system=\"muster\","
                  "error_type=\"NOT_FOUND\"}"),
            2);
}

TEST_F(MeasuredQueuesTest, CountsMessagesThatComeAgainByWhetherTheirWorkerWasLost) {
  Put();
  Receive();
  // Before the first event: increase() does not see a series begin.
  EXPECT_EQ(Redeliveries("returned"), 0);
  EXPECT_EQ(Redeliveries("interrupted"), 0);
  clock_.Advance(absl::Minutes(2));
  const std::vector<queue::Message> received = Receive();
  EXPECT_EQ(Redeliveries("returned"), 1) << "its lease ended, but no handler had begun";
  ASSERT_TRUE(measured_->BeginAttempt(queue_, {{received[0].receipt}}).ok());
  clock_.Advance(absl::Minutes(2));
  Receive();
  EXPECT_EQ(Redeliveries("returned"), 1);
  EXPECT_EQ(Redeliveries("interrupted"), 1);
}

TEST_F(MeasuredQueuesTest, CountsWhatGoesToTheDeadLetterStoreByTheReason) {
  Put();
  const std::vector<queue::Message> received = Receive();
  for (const std::string reason : {"attempts", "crash", "refused", "output"}) {
    EXPECT_EQ(DeadLetters("retail-in", reason), 0) << reason;
  }
  EXPECT_EQ(DeadLetters("retail-in", "result"), std::nullopt) << "it is no queue of results";
  std::vector<queue::DeadLetterRequest> requests(2);
  requests[0].receipt = received[0].receipt;
  requests[1].receipt = received[0].receipt;  // stale by then
  requests[0].kind = requests[1].kind = queue::DeadLetterKind::kCrash;
  EXPECT_TRUE(measured_->DeadLetter(queue_, requests).ok());
  EXPECT_EQ(DeadLetters("retail-in", "crash"), 1);
  EXPECT_EQ(DeadLetters("retail-in", "attempts"), 0);
}

TEST_F(MeasuredQueuesTest, ShowsOfAQueueOfResultsTheOneEndThatTheyMayHave) {
  const queue::QueueId results{"acme", "retail-out-3"};
  ASSERT_TRUE(measured_->CreateQueue(results, {}).ok());
  ASSERT_TRUE(measured_->Receive(results, {}).ok());
  EXPECT_EQ(DeadLetters("retail-out", "result"), 0);
  EXPECT_EQ(DeadLetters("retail-out", "attempts"), std::nullopt);
}

}  // namespace
}  // namespace muster::host
