// How long leases last: as the queue's metadata says, whoever set it.
#include <optional>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/names.h"
#include "muster/queue/lease_metadata.h"
#include "tests/fakes/queue/jetstream/jetstream_fixture.h"

namespace muster::queue::jetstream {
namespace {

// How long leases of `queue` last, as the server has it.
absl::Duration AckWait(nats::Connection* connection, const queue::QueueId& queue) {
  return nats::JetStream(connection, absl::Seconds(10))
      .GetConsumer(StreamOf(queue), kConsumer)
      ->ack_wait;
}

TEST_P(JetStreamQueueStoreTest, GivesEachQueueTheVisibilityInItsMetadata) {
  const queue::QueueId slow{"acme", "slow"};
  ASSERT_TRUE(store().CreateQueue(slow, queue::WithVisibility({}, absl::Minutes(7))).ok());
  EXPECT_EQ(AckWait(client_->connection.get(), slow), absl::Minutes(7));
  EXPECT_EQ(AckWait(client_->connection.get(), queue_), options_.settings.lease);
  ASSERT_TRUE(queue::SetVisibility(&store(), slow, std::nullopt).ok());
  EXPECT_EQ(AckWait(client_->connection.get(), slow), options_.settings.lease);
}

TEST_P(JetStreamQueueStoreTest, KeepsTheVisibilityOfAQueueThatACallerWouldHaveOtherwise) {
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Minutes(7)).ok());
  Options hasty = options_;
  hasty.settings.lease = absl::Seconds(1);
  const Client other(server_.url(), hasty);
  EXPECT_TRUE(absl::IsAlreadyExists(other.store->CreateQueue(queue_, {})));
  EXPECT_EQ(AckWait(client_->connection.get(), queue_), absl::Minutes(7));
}

// What was deleted behind its back is made again, whatever metadata the caller has.
TEST_P(JetStreamQueueStoreTest, MakesAQueueWholeAgainThatIsThereWithOtherMetadata) {
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Minutes(7)).ok());
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  ASSERT_TRUE(jetstream.DeleteStream(StreamOf(queue_)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(store().CreateQueue(queue_, {})));
  EXPECT_TRUE(store().Put(queue_, Bodies(1)).ok());
  EXPECT_EQ(AckWait(client_->connection.get(), queue_), absl::Minutes(7));
}

TEST_P(JetStreamQueueStoreTest, SeesTheVisibilityThatAnotherProcessHasSet) {
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Minutes(7)).ok());
  const Client other(server_.url(), options_);
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  const auto lasts = [](const Client& client, const queue::QueueId& queue) {
    const absl::Time now = absl::Now();
    return client.store->Receive(queue, {1})->front().next_visible_time - now;
  };
  EXPECT_GT(lasts(other, queue_), absl::Minutes(6));  // since it saw the queue first
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Hours(3)).ok());
  ASSERT_TRUE(other.store->Stats(queue_).ok());
  EXPECT_GT(lasts(other, queue_), absl::Hours(2));
}

// A job whose visibility changes while its items are in hand: the server goes by the new one.
TEST_P(JetStreamQueueStoreTest, FollowsANewVisibilityWithTheLeasesThatItHolds) {
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Minutes(7)).ok());
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  const queue::Receipt held = store().Receive(queue_, {1})->front().receipt;
  ASSERT_TRUE(store().BeginAttempt(queue_, {held})->front().ok());
  ShortenLeases();
  std::vector<queue::Message> again;
  while (again.empty()) again = store().Receive(queue_, {1}).value();
  EXPECT_EQ(again.front().body, "body 0");
  EXPECT_TRUE(again.front().interrupted);
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Minutes(7)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store().BeginAttempt(queue_, {held})->front().status()));
  EXPECT_TRUE(store().Delete(queue_, {again.front().receipt})->front().ok());
  EXPECT_EQ(store().Stats(queue_)->stored(), 0);
}

}  // namespace
}  // namespace muster::queue::jetstream
