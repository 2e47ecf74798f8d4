// SPDX-License-Identifier: Apache-2.0

// Messages of an input queue that no sound initiator puts.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/work_item.pb.h"
#include "services/processor/absent_content.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/test_seed.h"
#include "tests/fakes/processor/item_worker_fixture.h"
#include "tests/fakes/proto/mutations.h"

namespace muster::processor {
namespace {

using ::testing::HasSubstr;

constexpr char kSlice[] = "ann,1\nbob,2\n";

// A ledger that has item 3/4 with the bytes of kSlice.
class OneItemContent final : public content::ItemContent {
 public:
  absl::Status Read(const content::ItemReference& item, std::string* slice) override {
    if (item.batch != 3) return absl::NotFoundError("no such batch");
    if (item.index != 4 || item.hash != base::Fingerprint(kSlice)) {
      return absl::InvalidArgumentError("made of another slice");
    }
    *slice = kSlice;
    return absl::OkStatus();
  }
};

class MalformedItemsTest : public ItemWorkerTest {
 protected:
  MalformedItemsTest() {
    blobs_.SwitchOn();
    setup_.content = &content_;
    setup_.absent = &absent_;
    setup_.clock = &clock_;
  }

  v1::WorkItem Sound() {
    v1::WorkItem item;
    item.ParseFromString(Item(kSlice, 2).body);
    return item;
  }
  v1::WorkItem ByReference() {
    v1::WorkItem item = Sound();
    item.mutable_source()->set_owner("");
    return item;
  }
  v1::WorkItem AsBlob() {
    v1::WorkItem item = Sound();
    const std::string name = item::BlobName(3, 4);
    EXPECT_TRUE(blobs_.Put(name, item.inline_()).ok());
    item.set_blob(name);
    return item;
  }
  v1::WorkItem InOrder() {
    v1::WorkItem item = Sound();
    const std::string slice = item.inline_();
    item.mutable_ordered()->set_key("ann");
    item.mutable_ordered()->set_inline_(slice);
    item.mutable_ordered()->add_line_steps(1);
    return item;
  }
  v1::WorkItem Oversized() {
    v1::WorkItem item = Sound();
    item.set_transactions(1);
    item.mutable_oversized()->set_record_bytes(5000);
    item.mutable_oversized()->set_limit_bytes(1000);
    return item;
  }

  Settlement WorkOnBody(const v1::WorkItem& item) {
    queue::Message message;
    message.body = item.SerializeAsString();
    return Work(message);
  }

  base::FakeClock clock_;
  OneItemContent content_;
  AbsentContent absent_{&clock_, nullptr};
};

TEST_F(MalformedItemsTest, ABlobNameThatIsNoneIsPoisonAtOnce) {
  for (const char* name : {"", "../x", "batch-3-item-5", "batch-3-item-4-result-1-x"}) {
    v1::WorkItem item = Sound();
    item.set_blob(name);
    const Settlement settlement = WorkOnBody(item);
    EXPECT_EQ(settlement.kind, Settlement::Kind::kDead) << name;
    EXPECT_THAT(settlement.why, HasSubstr("not the name of its blob")) << name;
  }
  EXPECT_EQ(WorkOnBody(AsBlob()).kind, Settlement::Kind::kOk);
}

TEST_F(MalformedItemsTest, AReferenceToAnotherSliceThanTheLedgerHasIsPoisonAtOnce) {
  v1::WorkItem item = ByReference();
  item.set_content_hash(std::string(16, 'x'));
  const Settlement settlement = WorkOnBody(item);
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDead);
  EXPECT_THAT(settlement.why, HasSubstr("another slice"));
  EXPECT_EQ(WorkOnBody(ByReference()).kind, Settlement::Kind::kOk);
}

// One field of an item is changed at a time. The worker settles the item, and works on the next
// one.
TEST_F(MalformedItemsTest, AnyMutationIsSettledAlone) {
  const uint32_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("MUSTER_TEST_SEED=", seed));
  const std::vector<v1::WorkItem> forms = {Sound(), ByReference(), AsBlob(), InOrder(),
                                           Oversized()};
  ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
  const queue::Message sound = Item(kSlice, 2);
  queue::Cause cause;
  cause.reason = "its last attempt failed";
  for (v1::WorkItem form : forms) {
    form.mutable_deadline()->set_seconds(1'700'000'000);
    form.set_trace_context(std::string(26, 'x'));
    form.set_trace_state("a=b");
    for (const auto& mutation : proto::testing::MutationsOf(form, /*random=*/500, seed)) {
      SCOPED_TRACE(mutation.what);
      queue::Message message;
      message.body = mutation.body;
      const Settlement settlement = worker.Work(message, AttemptOf(1));
      EXPECT_NE(settlement.kind, Settlement::Kind::kUnset);
      EXPECT_TRUE(settlement.kind == Settlement::Kind::kOk || !settlement.why.empty());
      worker.OnGivenUp(message, cause);
      ASSERT_EQ(ResultOf(worker.Work(sound, AttemptOf(1))).aggregated().groups(0).rows_size(), 2);
    }
  }
}

}  // namespace
}  // namespace muster::processor
