// SPDX-License-Identifier: Apache-2.0

// Consumers of which the server delivers nothing new: they have their max_ack_pending of
// deliveries, or an administrator has paused them.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/queue_store.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/nats/nats_server.h"
#include "tests/fakes/queue/jetstream/jetstream_fixture.h"
#include "tests/fakes/queue/jetstream/tapped_connection.h"

namespace muster::queue::jetstream {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class StalledConsumerTest : public JetStreamQueueStoreTest {
 protected:
  StalledConsumerTest() {
    Options options = options_;
    options.prompt = &tapped_;
    tapped_store_ = OpenJetStreamQueues(client_->connection.get(), options).value();
  }

  // Changes one setting of the consumer.
  void Set(const std::string& field, const json& value) {
    json config = jetstream_.Call(Info(), nullptr).value()["config"];
    config[field] = value;
    const std::string create =
        absl::StrCat("CONSUMER.DURABLE.CREATE.", StreamOf(queue_), ".", kConsumer);
    ASSERT_TRUE(
        jetstream_.Call(create, {{"stream_name", StreamOf(queue_)}, {"config", config}}).ok());
  }
  std::string Info() const {
    return absl::StrCat("CONSUMER.INFO.", StreamOf(queue_), ".", kConsumer);
  }

  std::vector<queue::Message> Receive(int max_messages) {
    const auto messages = tapped_store_->Receive(queue_, {max_messages});
    EXPECT_TRUE(messages.ok()) << messages.status();
    return messages.value_or(std::vector<queue::Message>());
  }

  // Each receive that finds nothing waits a moment: all of them take twenty seconds or more, and no
  // lease of this test ends in that time.
  std::vector<queue::Message> ReceiveUntilThereIsOne() {
    std::vector<queue::Message> messages;
    for (int i = 0; i < 1000 && messages.empty() && !HasFailure(); ++i) messages = Receive(1);
    EXPECT_THAT(messages, SizeIs(1)) << jetstream_.Call(Info(), nullptr).value_or("no consumer");
    return messages;
  }

  void GiveBack(const queue::Message& message, absl::Duration delay) {
    queue::UpdateRequest request;
    request.receipt = message.receipt;
    request.visibility = delay;
    request.attempt_ended = true;
    ASSERT_TRUE(tapped_store_->Update(queue_, {request})->front().ok());
  }

  nats::JetStream jetstream_{client_->connection.get(), absl::Seconds(10)};
  std::atomic<int> unanswered_ = 0;  // pulls
  TappedConnection tapped_{client_->prompt.get(), [](absl::string_view) {},
                           [this](const absl::Status& pulled) {
                             if (absl::IsUnavailable(pulled)) ++unanswered_;
                           }};
  std::unique_ptr<queue::QueueStore> tapped_store_;
};

TEST_P(StalledConsumerTest, LeavesNoReceiveWithoutAnAnswer) {
  Set("max_ack_pending", 2);
  ASSERT_TRUE(store().Put(queue_, Bodies(3)).ok());
  const std::vector<queue::Message> held = Receive(2);
  ASSERT_EQ(held.size(), 2u);
  for (const queue::Message& message : held) GiveBack(message, absl::Hours(1));
  EXPECT_TRUE(Receive(1).empty());  // finds out
  unanswered_ = 0;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Receive(1).empty());
  EXPECT_EQ(unanswered_, 0);
}

TEST_P(StalledConsumerTest, DeliversWhatIsDueAgainAndThenNewMessages) {
  Set("max_ack_pending", 2);
  ASSERT_TRUE(store().Put(queue_, Bodies(3)).ok());
  const std::vector<queue::Message> held = Receive(2);
  ASSERT_EQ(held.size(), 2u);
  EXPECT_TRUE(Receive(1).empty());
  GiveBack(held[0], absl::Milliseconds(50));
  const std::vector<queue::Message> again = ReceiveUntilThereIsOne();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].body, "body 0");
  ASSERT_TRUE(tapped_store_->Delete(queue_, {again[0].receipt, held[1].receipt}).ok());
  const std::vector<queue::Message> last = ReceiveUntilThereIsOne();
  ASSERT_EQ(last.size(), 1u);
  EXPECT_EQ(last[0].body, "body 2");
}

// nats-server 2.9 takes up a message that is due, and forgets it until its lease ends if the only
// pull that waits has just expired. A frozen server finds both at the same moment.
TEST_P(StalledConsumerTest, ForgetsNoMessageThatIsDueAsAReceiveEnds) {
  Set("max_ack_pending", 1);
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  std::vector<queue::Message> held = Receive(1);
  ASSERT_EQ(held.size(), 1u);
  EXPECT_TRUE(Receive(1).empty());  // finds out
  for (int round = 0; round < 20 && held.size() == 1; ++round) {
    GiveBack(held[0], absl::Milliseconds(15));
    std::thread frozen([&] {
      server_.Freeze();
      absl::SleepFor(absl::Milliseconds(40));
      server_.Thaw();
    });
    held = Receive(1);
    frozen.join();
    if (held.empty()) held = ReceiveUntilThereIsOne();
  }
}

TEST_P(StalledConsumerTest, SaysThatAnAdministratorHasPausedIt) {
  if (jetstream_.ApiLevel().value() == 0) GTEST_SKIP() << "the server is older than 2.11";
  const std::string pause = absl::StrCat("CONSUMER.PAUSE.", StreamOf(queue_), ".", kConsumer);
  ASSERT_TRUE(jetstream_.Call(pause, {{"pause_until", "2100-01-01T00:00:00Z"}}).ok());
  const base::LogCapture log;
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  EXPECT_TRUE(Receive(1).empty());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(tapped_store_->Stats(queue_).ok());
  EXPECT_THAT(log.lines(),
              Contains(AllOf(HasSubstr("has paused the consumer of a queue"),
                             HasSubstr("queue=acme/work"), HasSubstr("until=2100-01-01T"))));
  ASSERT_TRUE(jetstream_.Call(pause, json::object()).ok());
  EXPECT_EQ(ReceiveUntilThereIsOne().size(), 1u);
  ASSERT_TRUE(tapped_store_->Stats(queue_).ok());
  EXPECT_THAT(log.lines(), SizeIs(2)) << "each is told once";
  EXPECT_THAT(log.lines().back(), HasSubstr("is no longer paused"));
}

INSTANTIATE_TEST_SUITE_P(Servers, StalledConsumerTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

}  // namespace
}  // namespace muster::queue::jetstream
