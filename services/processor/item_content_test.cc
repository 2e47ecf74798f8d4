// SPDX-License-Identifier: Apache-2.0

// Items whose content travels by reference.
#include "muster/content/item_content.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/sync/optimistic_sync_store.h"
#include "services/processor/absent_content.h"
#include "services/processor/item_worker.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/processor/item_worker_fixture.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::processor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A source that has what the test says.
class FakeContent final : public content::ItemContent {
 public:
  void Has(std::string slice) {
    slice_ = std::move(slice);
    error_ = absl::OkStatus();
  }
  void Fails(absl::Status error) { error_ = std::move(error); }
  const std::set<uint32_t>& kept() const { return kept_; }
  const std::vector<content::ItemReference>& asked() const { return asked_; }
  const std::vector<size_t>& expected() const { return expected_; }

  absl::Status Read(const content::ItemReference& item, std::string* slice) override {
    asked_.push_back(item);
    *slice = slice_;
    return error_;
  }
  void Expect(absl::Span<const content::ItemReference> items) override {
    expected_.push_back(items.size());
  }
  absl::Status KeepForRedrive(const content::ItemReference& item) override {
    kept_.insert(item.index);
    return absl::OkStatus();
  }

 private:
  std::string slice_;
  absl::Status error_;
  std::set<uint32_t> kept_;
  std::vector<content::ItemReference> asked_;
  std::vector<size_t> expected_;
};

class ItemContentTest : public ItemWorkerTest {
 protected:
  ItemContentTest() {
    setup_.content = &content_;
    setup_.absent = &absent_;
    setup_.suspended = &suspended_;
    setup_.clock = &clock_;
    carriage_of_items_ = item::Carriage::kByReference;
    content_.Has(slice_);
  }

  // 1,000 transactions of the customer "a", of 1 each: too long to travel inline.
  static std::string Slice() {
    std::string slice;
    for (int i = 0; i < 1000; ++i) slice += "aaaa,1\n";
    return slice;
  }

  static queue::Message Received(queue::Message message, int times) {
    message.dequeue_count = times;
    return message;
  }

  base::FakeClock clock_;
  std::shared_ptr<handler::HealthTroubles> health_ = std::make_shared<handler::HealthTroubles>();
  sync::testing::MemorySyncStore sync_;
  item::SuspendedBatches suspended_{&sync_};
  FakeContent content_;
  AbsentContent absent_{&clock_, health_};
  const std::string slice_ = Slice();
  const queue::Message message_ = [this] {
    carriage_of_items_ = item::Carriage::kByReference;
    return Item(slice_, 1000);
  }();
};

TEST_F(ItemContentTest, IsReadFromTheSourceAndWorkedOn) {
  EXPECT_LT(message_.body.size(), 200u) << "the message does not carry it";
  EXPECT_EQ(AmountOf(Work(message_), "aaaa"), "1000.00");
  ASSERT_EQ(content_.asked().size(), 1u);
  EXPECT_EQ(content_.asked()[0].batch, 3u);
  EXPECT_EQ(content_.asked()[0].index, 4u);
  EXPECT_EQ(content_.asked()[0].bytes, slice_.size());
  EXPECT_EQ(content_.asked()[0].hash, base::Fingerprint(slice_));
}

TEST_F(ItemContentTest, TravelsInlineWhereItIsShort) {
  EXPECT_EQ(AmountOf(Work(Item("ann,2\n", 1)), "ann"), "2.00");
  EXPECT_TRUE(content_.asked().empty());
}

// The tail of a batch is often short, and one such item must not cost the others their common
// fetch.
TEST_F(ItemContentTest, OfAllItemsOfAClaimThatReferToItIsExpectedTogether) {
  const queue::Message inline_item = Item("ann,2\n", 1);
  const queue::QueueId queue{"acme", "sum-in-0"};
  std::vector<listener::Delivery> claim;
  for (const queue::Message* message : {&message_, &inline_item, &message_}) {
    claim.push_back({message, &queue, claim.size(), 1, false, {}, {}});
  }
  ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
  NotedClaim context;
  worker.OnMessages(absl::MakeSpan(claim), context);
  EXPECT_EQ(context.settled_.size(), 3u);
  for (const auto& [slot, settlement] : context.settled_) {
    EXPECT_EQ(settlement.kind, Settlement::Kind::kOk) << slot;
  }
  EXPECT_THAT(content_.expected(), ::testing::ElementsAre(2u));
}

TEST_F(ItemContentTest, IsNotReadForAnItemThatThisWorkerDoesNotFit) {
  version_of_items_ = "8";
  EXPECT_EQ(Work(Item(slice_, 1000)).kind, Settlement::Kind::kDefer);
  EXPECT_TRUE(content_.asked().empty());
}

TEST_F(ItemContentTest, ThatCannotBeReadChargesNoAttemptAndSaysWhy) {
  content_.Fails(absl::UnavailableError("the initiator is away"));
  const Settlement settlement = Work(message_);
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer) << "which charges nothing";
  EXPECT_THAT(settlement.why, HasSubstr("the initiator is away"));
  EXPECT_EQ(health_->why(), "items of batch 3 wait for their content: the initiator is away");
  content_.Has(slice_);
  EXPECT_EQ(AmountOf(Work(message_), "aaaa"), "1000.00");
  EXPECT_EQ(health_->why(), "") << "all is well again";
}

TEST_F(ItemContentTest, ThatIsDamagedChargesNoAttemptEither) {
  content_.Fails(absl::DataLossError("its bytes have changed"));
  EXPECT_EQ(Work(message_, Sum, /*attempt=*/5).kind, Settlement::Kind::kDefer);
}

TEST_F(ItemContentTest, IsTriedAgainSoonAndThenAfterLongerPauses) {
  content_.Fails(absl::UnavailableError("away"));
  EXPECT_EQ(Work(Received(message_, 1)).delay, kMinAbsencePause);
  EXPECT_EQ(Work(Received(message_, 2)).delay, 2 * kMinAbsencePause);
  EXPECT_EQ(Work(Received(message_, 50)).delay, kMaxAbsencePause);
}

TEST_F(ItemContentTest, ThatStaysAwayLetsItsItemsGoSoThatTheyDoNotCirculateForEver) {
  content_.Fails(absl::UnavailableError("away"));
  EXPECT_EQ(Work(message_).kind, Settlement::Kind::kDefer);
  clock_.Advance(kAbsenceGrace);
  const Settlement gone = Work(message_);
  EXPECT_EQ(gone.kind, Settlement::Kind::kOk);
  EXPECT_TRUE(gone.outputs.empty()) << "nothing is counted: its initiator puts it again";
}

TEST_F(ItemContentTest, BeginsAnewToWaitAfterItWasRead) {
  content_.Fails(absl::UnavailableError("away"));
  EXPECT_EQ(Work(message_).kind, Settlement::Kind::kDefer);
  content_.Has(slice_);
  Work(message_);
  clock_.Advance(kAbsenceGrace);
  content_.Fails(absl::UnavailableError("away once more"));
  EXPECT_EQ(Work(message_).kind, Settlement::Kind::kDefer);
}

TEST_F(ItemContentTest, OfAStoppedBatchLetsItsItemsGo) {
  content_.Fails(absl::DataLossError("its bytes have changed"));
  ASSERT_TRUE(suspended_.Add(3).ok());
  const Settlement gone = Work(message_);
  EXPECT_EQ(gone.kind, Settlement::Kind::kOk);
  EXPECT_TRUE(gone.outputs.empty());
}

TEST_F(ItemContentTest, ThatIsDeletedWithItsBatchLetsALateCopyGo) {
  content_.Fails(absl::NotFoundError("no such batch"));
  setup_.is_over = [](uint64_t) { return true; };
  const Settlement gone = Work(message_);
  EXPECT_EQ(gone.kind, Settlement::Kind::kOk);
  EXPECT_TRUE(gone.outputs.empty());
}

TEST_F(ItemContentTest, IsLeftToOthersByAWorkerWithoutSources) {
  setup_.content = nullptr;
  EXPECT_EQ(Work(message_).kind, Settlement::Kind::kDefer);
}

TEST_F(ItemContentTest, OfADeadLetterIsKept) {
  ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
  queue::Cause cause;
  cause.reason = "it crashed";
  EXPECT_EQ(worker.OnGivenUp(message_, cause).size(), 1u);
  EXPECT_THAT(content_.kept(), ElementsAre(4u));
}

}  // namespace
}  // namespace muster::processor
