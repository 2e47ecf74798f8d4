// SPDX-License-Identifier: Apache-2.0

// PutEach and DeleteEach: calls that serve several queues.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "muster/queue/limits.h"
#include "muster/queue/queue_store.h"
#include "tests/conformance/queue/queue_conformance.h"

namespace muster::queue::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<NewMessage> Messages(const std::vector<std::string>& bodies) {
  std::vector<NewMessage> messages;
  for (const std::string& body : bodies) messages.emplace_back().body = body;
  return messages;
}

std::vector<std::string> BodiesOf(QueueStore* store, const QueueId& queue) {
  std::vector<std::string> bodies;
  const auto messages = store->Peek(queue, 32);
  EXPECT_TRUE(messages.ok()) << messages.status();
  for (const Message& message : messages.value()) bodies.push_back(message.body);
  return bodies;
}

TEST_P(QueueConformanceTest, PutsIntoSeveralQueuesAndFailsNoneForAnother) {
  const QueueId second{"acme", "second"};
  ASSERT_TRUE(store_->CreateQueue(second, {}).ok());
  const std::vector<NewMessage> two = Messages({"1", "2"}), one = Messages({"3"});
  const std::vector<NewMessage> large = Messages({std::string(traits().max_body_bytes + 1, 'x')});
  const std::vector<ForQueue<NewMessage>> puts = {
      {second, two}, {{"acme", "missing"}, one}, {queue_, one}};
  const auto put = store_->PutEach(puts);
  ASSERT_THAT(put, SizeIs(3));
  ASSERT_TRUE(put[0].ok()) << put[0].status();
  ASSERT_THAT(*put[0], SizeIs(2));
  EXPECT_TRUE(absl::IsNotFound(put[1].status())) << put[1].status();
  ASSERT_TRUE(put[2].ok()) << put[2].status();
  ASSERT_THAT(*put[2], SizeIs(1));

  const std::vector<ForQueue<NewMessage>> more = {{second, large}, {queue_, one}};
  const auto again = store_->PutEach(more);
  EXPECT_TRUE(absl::IsInvalidArgument(again[0].status())) << again[0].status();
  EXPECT_TRUE(again[1].ok()) << again[1].status();

  EXPECT_THAT(BodiesOf(store_, second), ElementsAre("1", "2"));
  EXPECT_THAT(BodiesOf(store_, queue_), ElementsAre("3", "3"));
  EXPECT_THAT(store_->PutEach({}), IsEmpty());
}

TEST_P(QueueConformanceTest, DeletesFromSeveralQueuesWhatEachHolds) {
  const QueueId second{"acme", "second"};
  ASSERT_TRUE(store_->CreateQueue(second, {}).ok());
  const std::vector<NewMessage> two = Messages({"1", "2"});
  const std::vector<ForQueue<NewMessage>> puts = {{queue_, two}, {second, two}};
  for (const auto& put : store_->PutEach(puts)) ASSERT_TRUE(put.ok()) << put.status();
  std::vector<Receipt> here, there;
  for (const Message& message : Receive(2)) here.push_back(message.receipt);
  const auto of_second = store_->Receive(second, {.max_messages = 1});
  ASSERT_TRUE(of_second.ok()) << of_second.status();
  for (const Message& message : *of_second) there.push_back(message.receipt);
  here.emplace_back("no receipt");
  const std::vector<ForQueue<Receipt>> deletes = {
      {{"acme", "missing"}, there}, {second, there}, {queue_, here}};
  const auto deleted = store_->DeleteEach(deletes);
  ASSERT_THAT(deleted, SizeIs(3));
  EXPECT_TRUE(absl::IsNotFound(deleted[0].status())) << deleted[0].status();
  ASSERT_TRUE(deleted[1].ok()) << deleted[1].status();
  EXPECT_THAT(*deleted[1], ElementsAre(absl::OkStatus()));
  ASSERT_TRUE(deleted[2].ok()) << deleted[2].status();
  ASSERT_THAT(*deleted[2], SizeIs(3));
  EXPECT_TRUE((*deleted[2])[0].ok() && (*deleted[2])[1].ok());
  EXPECT_FALSE((*deleted[2])[2].ok());

  Restart();
  Advance(kVisibility);
  EXPECT_THAT(ReceiveBodies(), IsEmpty());
  EXPECT_THAT(BodiesOf(store_, second), ElementsAre("2"));
}

}  // namespace

bool LinkJoinTests() { return true; }

}  // namespace muster::queue::conformance
