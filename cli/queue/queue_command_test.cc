// SPDX-License-Identifier: Apache-2.0

// muster queue, here and on a mesh.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/held_keys.h"
#include "muster/queue/limits.h"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class QueueCommandTest : public ClientTest {
 protected:
  QueueCommandTest() { EXPECT_TRUE(queues_->CreateQueue(id_, {}).ok()); }

  void Put(const std::string& body) {
    std::vector<queue::NewMessage> messages(1);
    messages[0].body = body;
    ASSERT_TRUE(queues_->Put(id_, messages).ok());
  }
  std::string GiveUp(const std::string& body) {
    std::vector<queue::NewMessage> messages(1);
    messages[0].body = body;
    const auto put = queues_->Put(id_, messages);
    EXPECT_TRUE(put.ok()) << put.status();
    const queue::DeadLetterRequest request{put->front().receipt, {"it hung", 3, "worker-1", {}}};
    EXPECT_TRUE(queues_->DeadLetter(id_, {request})->front().ok());
    return put->front().message_id;
  }

  void Hold(const std::string& key) {
    EXPECT_TRUE(keys_.Hold(id_, {key, 7, next_item_++, clock_.Now()}).ok());
  }

  const queue::QueueId id_ = {"local", "shop-in-0"};
  item::HeldKeyStore keys_{records_.get()};
  uint64_t next_item_ = 0;
};

TEST_F(QueueCommandTest, ShowsTheSameHereAndThere) {
  ASSERT_TRUE(queues_->CreateQueue({"local", "shop-out-0"}, {}).ok());
  for (int i = 0; i < 12; ++i) {
    Put(absl::StrCat("body ", i));
    GiveUp(absl::StrCat("poison ", i));
  }
  clock_.Advance(absl::Seconds(90));
  for (const char* format : {"table", "json"}) {
    RunBoth({"queue", "list", "-o", format});
    RunBoth({"queue", "stats", "shop-in-0", "-o", format});
    RunBoth({"queue", "peek", "shop-in-0", "-o", format});
    RunBoth({"queue", "poison", "shop-in-0", "--max", "5", "-o", format});
  }
  const Done listed = RunBoth({"queue", "list"});
  EXPECT_EQ(listed.code, kOk);
  EXPECT_THAT(listed.out, AllOf(HasSubstr("local/shop-in-0"), HasSubstr("local/shop-out-0"),
                                HasSubstr("1m30s")));
  EXPECT_THAT(RunBoth({"queue", "poison", "shop-in-0"}).out, HasSubstr("it hung"));
}

// A page of a store ends at 64 MiB of bodies, and the first one was taken for all.
TEST_F(QueueCommandTest, ShowsMorePoisonThanThePageOfAStoreHolds) {
  for (int i = 0; i < 66; ++i) GiveUp(std::string(queue::kMaxBodyBytes, 'x'));
  const std::string last = GiveUp("the last one");
  EXPECT_THAT(RunBoth({"queue", "poison", "shop-in-0", "--max", "1000"}).out, HasSubstr(last));
}

TEST_F(QueueCommandTest, ShowsThePoisonBehindThatOfTheListBefore) {
  const std::string first = GiveUp("1");
  const std::string second = GiveUp("2");
  const std::string third = GiveUp("3");
  const Done begun = RunBoth({"queue", "poison", "shop-in-0", "--max", "2"});
  EXPECT_THAT(begun.out, AllOf(HasSubstr(first), HasSubstr(second), Not(HasSubstr(third))));
  EXPECT_EQ(begun.err, "muster: there are more: the same command with --after " + second + "\n");
  const Done rest = RunBoth({"queue", "poison", "shop-in-0", "--max", "1", "--after", second});
  EXPECT_THAT(rest.out, AllOf(HasSubstr(third), Not(HasSubstr(second))));
  EXPECT_EQ(rest.err, "") << "these are all";
  EXPECT_EQ(RunBoth({"queue", "poison", "shop-in-0", "--after", "nonsense"}).code, kError);
}

TEST_F(QueueCommandTest, ShowsAsMuchPoisonAsAPageMayHaveAndSaysThatThereIsMore) {
  const auto put = queues_->Put(id_, std::vector<queue::NewMessage>(queue::kMaxListPoison + 1));
  ASSERT_TRUE(put.ok()) << put.status();
  std::vector<queue::DeadLetterRequest> requests;
  for (const auto& message : *put) requests.push_back({message.receipt, {"it hung", 3, {}, {}}});
  ASSERT_TRUE(queues_->DeadLetter(id_, requests).ok());
  const std::string most = absl::StrCat(queue::kMaxListPoison);
  EXPECT_THAT(RunBoth({"queue", "poison", "shop-in-0", "--max", most}).err, HasSubstr("--after"));
}

TEST_F(QueueCommandTest, ListsTheQueuesOfAnotherAccount) {
  ASSERT_TRUE(queues_->CreateQueue({"acme", "theirs"}, {}).ok());
  EXPECT_THAT(RunBoth({"queue", "list", "--account", "acme"}).out, HasSubstr("acme/theirs"));
}

TEST_F(QueueCommandTest, ListsMoreQueuesThanItReadsAtATime) {
  for (int i = 0; i < 501; ++i) {
    ASSERT_TRUE(queues_->CreateQueue({"acme", absl::StrCat("q-", 1000 + i)}, {}).ok());
  }
  const std::string listed = RunBoth({"queue", "list", "--account", "acme"}).out;
  for (const char* name : {"acme/q-1000", "acme/q-1499", "acme/q-1500"}) {
    EXPECT_THAT(listed, HasSubstr(name));
  }
}

TEST_F(QueueCommandTest, FailsTheSameHereAndThere) {
  for (const char* verb : {"stats", "peek", "poison", "redrive", "purge"}) {
    const Done done = RunOnServer({"queue", verb, "none-in-0"});
    EXPECT_EQ(done.code, kError);
    EXPECT_THAT(done.err, EndsWith("; `muster queue list` shows those there are\n"));
  }
  EXPECT_EQ(RunBoth({"queue", "stats", "none-in-0"}).code, kError);
  EXPECT_EQ(RunBoth({"queue", "peek", "shop-in-0", "--max", "33"}).code, kUsage);
}

TEST_F(QueueCommandTest, RedrivesThere) {
  GiveUp("a");
  const std::string named = GiveUp("b");
  GiveUp("c");
  EXPECT_EQ(RunOnServer({"queue", "redrive", "shop-in-0", "--message", named}).out,
            "redriven: 1 message\n");
  EXPECT_EQ(RunOnServer({"queue", "redrive", "shop-in-0", "-o", "json"}).out,
            "{\"messages\":2,\"batches\":[]}\n");
  EXPECT_EQ(queues_->Stats(id_)->ready, 3);
}

TEST_F(QueueCommandTest, RedrivesThereNoMessageThatIsNotPoison) {
  GiveUp("a");
  const Done done = RunOnServer({"queue", "redrive", "shop-in-0", "--message", "nonsense"});
  EXPECT_EQ(done.code, kError);
  EXPECT_EQ(done.err, "muster: local/shop-in-0 has no poison message nonsense\n");
  EXPECT_EQ(RunOnServer({"queue", "redrive", "shop-in-0", "--message", "a", "--max", "1"}).code,
            kUsage);
}

TEST_F(QueueCommandTest, ShowsHeldKeysTheSameHereAndThere) {
  EXPECT_EQ(RunBoth({"queue", "held", "shop-in-0", "-o", "json"}).out, "[]\n");
  Hold("alice");
  Hold(std::string("b\x01\\\xff", 4));
  const Done done = RunBoth({"queue", "held", "shop-in-0"});
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("alice"), HasSubstr("7/0"),
                    HasSubstr("redriven: it waits or is at work"), HasSubstr("b\\x01\\\\\\xff")));
  RunBoth({"queue", "held", "shop-in-0", "-o", "json"});
}

TEST_F(QueueCommandTest, ReleasesThereTheKeysAsTheyAreShown) {
  for (const char* key : {"alice", "bob", "carol", "O'Brien\\"}) Hold(key);
  EXPECT_EQ(
      RunOnServer({"queue", "release", "shop-in-0", "--key", "bob", "--key", "O'Brien\\\\"}).out,
      "released: 2 keys of local/shop-in-0\n");
  EXPECT_EQ(RunOnServer({"queue", "release", "shop-in-0", "--key", "bob"}).err,
            "muster: local/shop-in-0 does not hold the key 'bob'\n");
  EXPECT_EQ(RunOnServer({"queue", "release", "shop-in-0"}).code, kError) << "of none";
  EXPECT_EQ(RunOnServer({"queue", "release", "shop-in-0", "--all"}).out,
            "released: 2 keys of local/shop-in-0\n");
  EXPECT_TRUE(keys_.Read(id_)->empty());
}

TEST_F(QueueCommandTest, RedrivesThereNoKeyWithoutADeadLetter) {
  Hold("alice");
  const Done done = RunOnServer({"queue", "redrive", "shop-in-0", "--key", "alice"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.err, HasSubstr("none of the 1 held keys of local/shop-in-0 has a dead letter"));
  EXPECT_EQ(RunOnServer({"queue", "redrive", "shop-in-0", "--key", "a", "--held"}).code, kUsage);
  EXPECT_EQ(RunOnServer({"queue", "redrive", "shop-in-0", "--held", "--max", "1"}).code, kUsage);
}

TEST_F(QueueCommandTest, PurgesThere) {
  Put("a");
  GiveUp("b");
  EXPECT_EQ(
      RunOnServer({"queue", "purge", "shop-in-0"}).out,
      "purged: all messages of local/shop-in-0 but poison; an open batch puts its items again\n");
  EXPECT_EQ(queues_->Stats(id_)->stored(), 0);
  EXPECT_EQ(RunOnServer({"queue", "purge", "shop-in-0", "--poison"}).out,
            "purged: 1 poison message of local/shop-in-0\n");
  EXPECT_EQ(queues_->Stats(id_)->poison, 0);
}

TEST_F(QueueCommandTest, PurgesHereWhenNobodyElseWorksWithTheDirectory) {
  Put("a");
  const std::vector<std::string> purge = {"queue", "purge", "shop-in-0", "--data-dir", data_dir()};
  EXPECT_EQ(Run(purge).code, kError);
  initiator_.reset();
  queue_service_.reset();
  queues_.reset();
  records_.reset();
  EXPECT_EQ(Run(purge).code, kOk);
  EXPECT_THAT(Run({"queue", "peek", "shop-in-0", "-o", "json", "--data-dir", data_dir()}).out,
              "[]\n");
}

}  // namespace
}  // namespace muster::cli
