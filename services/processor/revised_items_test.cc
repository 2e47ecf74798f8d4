// SPDX-License-Identifier: Apache-2.0

// Items of other revisions and handler versions, and items that only newer processors can read.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/item_result.pb.h"
#include "muster/v1/work_item.pb.h"
#include "services/processor/item_worker.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/processor/item_worker_fixture.h"

namespace muster::processor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ItemWorkerTest, LeavesItemsOfAnotherRevisionToOthersUnchargedAndSaysSo) {
  base::LogCapture log;
  revision_of_items_ = "r2";
  const Settlement settlement = Work(Item("a,1\n", 1));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_THAT(settlement.why, HasSubstr("revision r2"));
  EXPECT_THAT(settlement.wanted, HasSubstr("revision r2"));
  EXPECT_EQ(Work(Item("b,1\n", 1)).wanted, settlement.wanted) << "it is of the same kind";
  revision_of_items_ = "r3";
  EXPECT_NE(Work(Item("c,1\n", 1)).wanted, settlement.wanted);
}

// Changes the item as a newer initiator may write it: with more fields, and with its slice packed
// in a new way.
queue::Message Newer(queue::Message message, bool repacked) {
  v1::WorkItem item;
  EXPECT_TRUE(item.ParseFromString(message.body));
  if (repacked) item.clear_payload();
  message.body = item.SerializeAsString() + "\xa2\x06\x03new";
  return message;
}

TEST_F(ItemWorkerTest, WorksOnAnItemToWhichANewerMusterHasAddedFields) {
  EXPECT_EQ(AmountOf(Work(Newer(Item("a,1\n", 1), /*repacked=*/false)), "a"), "1.00");
}

TEST_F(ItemWorkerTest, LeavesItemsToNewerProcessorsUnchargedThatOnlyTheyCanRead) {
  base::LogCapture log;
  const Settlement settlement = Work(Newer(Item("a,1\n", 1), /*repacked=*/true));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_THAT(settlement.why, HasSubstr("newer muster"));
  EXPECT_THAT(settlement.wanted, HasSubstr("newer muster"));
  EXPECT_EQ(Work(Newer(Item("b,1\n", 1), /*repacked=*/true)).wanted, settlement.wanted);
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("no fitting worker")));
}

TEST_F(ItemWorkerTest, WorksOnItemsOfTheRevisionThatTheirBatchIsBoundTo) {
  setup_.revisions = &revisions_;
  ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
  revision_of_items_ = "r0";
  EXPECT_EQ(AmountOf(worker.Work(Item("5,ann\n", 1), AttemptOf(1)), "ann"), "5.00");
  EXPECT_EQ(AmountOf(worker.Work(Item("6,bob\n", 1), AttemptOf(1)), "bob"), "6.00");
  EXPECT_EQ(revisions_.asked_, 1);
  revision_of_items_ = "r1";
  EXPECT_EQ(AmountOf(worker.Work(Item("ann,7\n", 1), AttemptOf(1)), "ann"), "7.00");
}

TEST_F(ItemWorkerTest, LeavesItemsToOthersWhoseRevisionNobodyKnows) {
  setup_.revisions = &revisions_;
  revision_of_items_ = "r9";
  const Settlement settlement = Work(Item("ann,5\n", 1));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_THAT(settlement.why, HasSubstr("never heard of it"));
}

TEST_F(ItemWorkerTest, LeavesItemsToOthersWhoseRevisionHasAnotherHandlerHere) {
  setup_.revisions = &revisions_;
  revisions_.version_ = "8";
  revision_of_items_ = "r0";
  const Settlement settlement = Work(Item("5,ann\n", 1));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_THAT(settlement.why, HasSubstr("handler version 8"));
}

TEST_F(ItemWorkerTest, LeavesItemsToOthersWhoseBatchIsBoundToAnotherVersion) {
  version_of_items_ = "6";
  const Settlement settlement = Work(Item("ann,5\n", 1));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_THAT(settlement.wanted, HasSubstr("handler version 6"));
}

// An attempt costs a broker more than all the rest of giving an item back.
TEST_F(ItemWorkerTest, BeginsOnNoItemsThatDoNotFitOnceItHasSeenOne) {
  base::LogCapture log;
  ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
  const queue::QueueId queue{"acme", "in"};
  const auto work = [&](const std::vector<std::string>& versions) {
    std::vector<queue::Message> messages;
    for (const std::string& version : versions) {
      version_of_items_ = version;
      messages.push_back(Item("ann,5\n", 1));
    }
    std::vector<listener::Delivery> deliveries;
    for (size_t i = 0; i < messages.size(); ++i) {
      deliveries.push_back({&messages[i], &queue, i, 1, false, {}, {}});
    }
    NotedClaim context;
    worker.OnMessages(absl::MakeSpan(deliveries), context);
    EXPECT_EQ(context.settled_.size(), versions.size());
    return context;
  };
  EXPECT_THAT(work({"6"}).begun_, ElementsAre(0)) << "it has not looked for any yet";
  NotedClaim context = work({"6", "7", "6", "7"});
  EXPECT_THAT(context.begun_, ElementsAre(1, 3));
  EXPECT_EQ(context.settled_[0].kind, Settlement::Kind::kDefer);
  EXPECT_THAT(context.settled_[0].wanted, HasSubstr("handler version 6"));
  EXPECT_EQ(AmountOf(context.settled_[1], "ann"), "5.00");
  EXPECT_THAT(work({"7"}).begun_, ElementsAre(0));
  EXPECT_THAT(work({"6"}).begun_, ElementsAre(0)) << "none of those before was one";
}

TEST_F(ItemWorkerTest, WorksOnItemsOfABatchThatIsBoundToNoVersionAndTellsItsOwn) {
  version_of_items_ = "";
  const Settlement settlement = Work(Item("ann,5\n", 1));
  EXPECT_EQ(AmountOf(settlement, "ann"), "5.00");
  EXPECT_EQ(ResultOf(settlement).handler_version(), "7");
  setup_.handler_version = "8";
  EXPECT_EQ(ResultOf(Work(Item("ann,5\n", 1))).handler_version(), "8");
}

TEST_F(ItemWorkerTest, WorksOnItemsOfAnotherRevisionThatAreBoundToNoVersion) {
  setup_.revisions = &revisions_;
  revisions_.version_ = "8";
  version_of_items_ = "";
  revision_of_items_ = "r0";
  const Settlement settlement = Work(Item("5,ann\n", 1));
  EXPECT_EQ(AmountOf(settlement, "ann"), "5.00");
  EXPECT_EQ(ResultOf(settlement).handler_version(), "8");
}

TEST_F(ItemWorkerTest, LeavesItemsOfAnotherRevisionToOthersThoughAnyVersionMayHaveThem) {
  version_of_items_ = "";
  revision_of_items_ = "r2";
  const Settlement settlement = Work(Item("ann,5\n", 1));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_THAT(settlement.why, HasSubstr("handler version any; this worker has"));
}

TEST_F(ItemWorkerTest, TellsWhichVersionGaveUpAnItemThatIsBoundToNone) {
  const auto version_told = [&] {
    ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
    const auto outputs = worker.OnGivenUp(Item("5,ann\n", 1), {"boom", 5, "worker-1", {}});
    v1::ItemResult result;
    EXPECT_TRUE(result.ParseFromString(outputs.at(0).body));
    return result.handler_version();
  };
  setup_.handler_version = "9";
  EXPECT_EQ(version_told(), "7") << "it is bound to this one";
  version_of_items_ = "";
  EXPECT_EQ(version_told(), "9");
  revision_of_items_ = "r0";
  EXPECT_EQ(version_told(), "9") << "who gives it up cannot work on it";
  setup_.revisions = &revisions_;
  EXPECT_EQ(version_told(), "7") << "of its revision";
}

TEST(LoggedBatchesTest, ForgetsTheBatchThatCameLeastRecently) {
  LoggedBatches logged;
  EXPECT_TRUE(logged.Insert(1));
  EXPECT_TRUE(logged.Insert(2));
  EXPECT_FALSE(logged.Insert(1));
  for (uint64_t batch = 3; batch <= kMaxLogged + 1; ++batch) EXPECT_TRUE(logged.Insert(batch));
  EXPECT_FALSE(logged.Insert(1));
  EXPECT_TRUE(logged.Insert(2));
}

}  // namespace
}  // namespace muster::processor
