// Queues whose stream or consumer others deleted, changed, or put something else in place of.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mismatch.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/names.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/queue/jetstream/jetstream_fixture.h"

namespace muster::queue::jetstream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_P(JetStreamQueueStoreTest, DeletesWhatAnEarlierDeleteLeft) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  ASSERT_TRUE(jetstream.DeleteStream(StreamOf(queue_)).ok());
  EXPECT_TRUE(store().DeleteQueue(queue_).ok());
  EXPECT_TRUE(absl::IsNotFound(store().DeleteQueue(queue_)));
  EXPECT_TRUE(store().CreateQueue(queue_, {{"other", "metadata"}}).ok());
}

TEST_P(JetStreamQueueStoreTest, RefusesAStreamThatIsSetOtherwise) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  const queue::QueueId taken{"acme", "taken"};
  ASSERT_TRUE(jetstream
                  .EnsureStream({{"name", StreamOf(taken)},
                                 {"subjects", {SubjectOf(taken)}},
                                 {"storage", "memory"},
                                 {"retention", "limits"}})
                  .ok());
  const absl::Status status = store().CreateQueue(taken, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(StreamOf(taken)));
  EXPECT_EQ(base::MismatchOf(status),
            (base::Mismatch{StreamOf(taken), "retention", "\"limits\"", "\"workqueue\""}));
}

TEST_P(JetStreamQueueStoreTest, SaysWhatWasPutInAQueuesPlaceAndMakesItAnewOnceThatIsGone) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  ASSERT_TRUE(jetstream.DeleteStream(StreamOf(queue_)).ok());
  ASSERT_TRUE(jetstream
                  .EnsureStream({{"name", StreamOf(queue_)},
                                 {"subjects", {"elsewhere"}},
                                 {"storage", "file"},
                                 {"retention", "limits"}})
                  .ok());
  EXPECT_TRUE(absl::IsNotFound(store().Put(queue_, Bodies(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(store().Receive(queue_, {}).status()));
  EXPECT_TRUE(absl::IsNotFound(store().Stats(queue_).status()));
  const absl::Status status = store().CreateQueue(queue_, {});
  EXPECT_EQ(base::MismatchOf(status),
            (base::Mismatch{StreamOf(queue_), "retention", "\"limits\"", "\"workqueue\""}))
      << status;
  ASSERT_TRUE(jetstream.DeleteStream(StreamOf(queue_)).ok());
  ASSERT_TRUE(store().CreateQueue(queue_, {}).ok());
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  EXPECT_THAT(Drain(), ElementsAre("body 0", "body 1"));
}

TEST_P(JetStreamQueueStoreTest, MendsWhatTheServerLetsItChange) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  nlohmann::json config = *jetstream.StreamConfig(StreamOf(queue_));
  config["subjects"] = {"elsewhere"};
  ASSERT_TRUE(jetstream.Call(absl::StrCat("STREAM.UPDATE.", StreamOf(queue_)), config).ok());
  EXPECT_TRUE(absl::IsNotFound(store().Put(queue_, Bodies(1)).status()));
  ASSERT_TRUE(store().CreateQueue(queue_, {}).ok());
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  EXPECT_THAT(Drain(), ElementsAre("body 0"));
}

TEST_P(JetStreamQueueStoreTest, MakesALostConsumerAgain) {
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  ASSERT_TRUE(
      jetstream.Call(absl::StrCat("CONSUMER.DELETE.", StreamOf(queue_), ".", kConsumer), nullptr)
          .ok());
  EXPECT_TRUE(absl::IsNotFound(store().Receive(queue_, {}).status()));
  ASSERT_TRUE(store().CreateQueue(queue_, {}).ok());
  EXPECT_THAT(Drain(), ElementsAre("body 0"));
}

TEST_P(JetStreamQueueStoreTest, AnswersNotFoundOnceTheStreamsWereDeleted) {
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  ASSERT_TRUE(jetstream.DeleteStream(StreamOf(queue_)).ok());
  EXPECT_TRUE(absl::IsNotFound(store().Put(queue_, Bodies(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(store().Receive(queue_, {}).status()));
  EXPECT_TRUE(absl::IsNotFound(store().Stats(queue_).status()));
  ASSERT_TRUE(store().CreateQueue(queue_, {}).ok());
  EXPECT_TRUE(store().Put(queue_, Bodies(1)).ok());
}

TEST_P(JetStreamQueueStoreTest, MakesAQueueAgainThatAnotherProcessDeleted) {
  Client other(server_.url(), options_);
  ASSERT_TRUE(other.store->DeleteQueue(queue_).ok());
  ASSERT_TRUE(store().CreateQueue(queue_, {}).ok());
  EXPECT_TRUE(store().Put(queue_, Bodies(1)).ok());
  EXPECT_EQ(other.store->Receive(queue_, {1})->size(), 1u);
}

TEST_P(JetStreamQueueStoreTest, SeesMetadataThatAnotherProcessGaveAQueueOfItsOwnMaking) {
  Client other(server_.url(), options_);
  ASSERT_TRUE(other.store->SetMetadata(queue_, {{"owner", "billing"}}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(store().CreateQueue(queue_, {})));
  EXPECT_TRUE(store().CreateQueue(queue_, {{"owner", "billing"}}).ok());
}

}  // namespace
}  // namespace muster::queue::jetstream
