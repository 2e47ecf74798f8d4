// SPDX-License-Identifier: Apache-2.0

// The held keys of a queue, over the queue service.
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/item/held_keys.h"
#include "services/queue-admin/queue_service.h"
#include "tests/fakes/initiator/queue_service_fixture.h"

namespace muster::queue_admin {
namespace {

using initiator::QueueServiceTest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class HeldKeysServiceTest : public QueueServiceTest {
 protected:
  // The item of batch 7 becomes a dead letter, and holds `key`. Returns its message's id.
  std::string HoldBehind(uint32_t item, const std::string& key) {
    EXPECT_TRUE(keys_.Hold(id_, {key, kBatch, item, clock_.Now()}).ok());
    return GiveUp(ItemBody(item));
  }
  std::vector<v1::HeldKey> List() {
    v1::ListHeldKeysResponse response;
    EXPECT_EQ(Call(&Stub::ListHeldKeys, About<v1::ListHeldKeysRequest>(), &response),
              absl::OkStatus());
    return {response.keys().begin(), response.keys().end()};
  }
  std::vector<std::string> Held() {
    std::vector<std::string> keys;
    for (const v1::HeldKey& key : List()) keys.push_back(key.key());
    return keys;
  }
  absl::StatusOr<std::vector<std::string>> Release(const std::vector<std::string>& keys,
                                                   bool all = false) {
    auto request = About<v1::ReleaseHeldKeysRequest>();
    request.mutable_keys()->Add(keys.begin(), keys.end());
    request.set_all(all);
    v1::ReleaseHeldKeysResponse response;
    const absl::Status called = Call(&Stub::ReleaseHeldKeys, request, &response);
    if (!called.ok()) return called;
    std::vector<std::string> released;
    for (const v1::HeldKey& key : response.released()) released.push_back(key.key());
    return released;
  }
  absl::StatusOr<v1::RedriveHeldKeysResponse> RedriveKeys(const std::vector<std::string>& keys,
                                                          bool all = false) {
    auto request = About<v1::RedriveHeldKeysRequest>();
    request.mutable_keys()->Add(keys.begin(), keys.end());
    request.set_all(all);
    v1::RedriveHeldKeysResponse response;
    const absl::Status called = Call(&Stub::RedriveHeldKeys, request, &response);
    if (!called.ok()) return called;
    return response;
  }

  item::HeldKeyStore keys_{&sync_};
};

TEST_F(HeldKeysServiceTest, ListsHeldKeysWithTheirDeadLettersTheLongestHeldFirst) {
  const std::string message = HoldBehind(1, "alice");
  ASSERT_TRUE(keys_.Hold(id_, {std::string("b\0b", 3), kBatch, 5, clock_.Now()}).ok());
  const std::vector<v1::HeldKey> held = List();
  ASSERT_THAT(held, SizeIs(2));
  EXPECT_EQ(held[0].key(), "alice");
  EXPECT_EQ(held[0].batch(), kBatch);
  EXPECT_EQ(held[0].item(), 1);
  EXPECT_EQ(base::FromProto(held[0].since()), clock_.Now());
  EXPECT_EQ(held[0].message_id(), message);
  EXPECT_EQ(held[0].cause().reason(), "it hung");
  EXPECT_EQ(held[1].key(), std::string("b\0b", 3));
  EXPECT_EQ(held[1].message_id(), "") << "it was redriven";
  EXPECT_FALSE(held[1].has_cause());
}

TEST_F(HeldKeysServiceTest, ReleasesTheNamedKeysAndWakesTheOwner) {
  std::vector<std::string> heard;
  const auto hearing = bus_.Subscribe([&](const bus::InterRoleCommunicationEvent& event) {
    const auto* const work = std::get_if<bus::CloudQueueWorkDetectedTriggerEvent>(&event.payload);
    if (work != nullptr) heard.push_back(work->queue_name);
  });
  HoldBehind(0, "alice");
  HoldBehind(1, "bob");
  HoldBehind(2, "carol");
  EXPECT_THAT(*Release({"bob"}), ElementsAre("bob"));
  EXPECT_THAT(heard, ElementsAre("work"));
  EXPECT_THAT(Held(), ElementsAre("alice", "carol"));
  EXPECT_EQ(queues_->Stats(id_)->poison, 3) << "they stay dead letters";
  EXPECT_THAT(*Release({}, /*all=*/true), ElementsAre("alice", "carol"));
  EXPECT_THAT(Held(), IsEmpty());
}

TEST_F(HeldKeysServiceTest, ReleasesNothingIfAKeyIsNotHeld) {
  HoldBehind(0, "alice");
  const absl::Status refused = Release({"alice", "mallory"}).status();
  EXPECT_EQ(refused, absl::NotFoundError("acme/work does not hold the key 'mallory'"));
  EXPECT_THAT(Held(), ElementsAre("alice"));
}

TEST_F(HeldKeysServiceTest, RedrivesTheDeadLettersOfHeldKeysWhichStayHeld) {
  CompleteBatch();
  const std::string message = HoldBehind(1, "alice");
  ASSERT_TRUE(keys_.Hold(id_, {"bob", kBatch, 0, clock_.Now()}).ok());
  const auto redriven = RedriveKeys({"alice", "bob"});
  ASSERT_TRUE(redriven.ok()) << redriven.status();
  EXPECT_EQ(redriven->redriven().redriven(), 1);
  EXPECT_THAT(redriven->redriven().batches(), ElementsAre(kBatch));
  EXPECT_THAT(redriven->without_dead_letter(), ElementsAre("bob"));
  EXPECT_EQ(OrDie(Peek(32)).messages(0).message_id(), message);
  EXPECT_EQ(ledger_->Get(kBatch)->state, ledger::BatchState::kSealed);
  EXPECT_THAT(Held(), ElementsAre("alice", "bob"));
  EXPECT_TRUE(absl::IsFailedPrecondition(RedriveKeys({"alice"}).status())) << "it is at work";
}

TEST_F(HeldKeysServiceTest, RedrivesAllHeldKeysButNoOtherPoison) {
  CompleteBatch();
  GiveUp("not of a held key");
  HoldBehind(1, "alice");
  EXPECT_EQ(RedriveKeys({}, /*all=*/true)->redriven().redriven(), 1);
  EXPECT_EQ(queues_->Stats(id_)->poison, 1);
}

TEST_F(HeldKeysServiceTest, LetsKeysGoOnWhenTheirDeadLettersArePurged) {
  HoldBehind(1, "alice");
  ASSERT_TRUE(keys_.Hold(id_, {"bob", kBatch, 0, clock_.Now()}).ok());  // redriven, at work
  v1::PurgePoisonResponse purged;
  ASSERT_EQ(Call(&Stub::PurgePoison, About<v1::PurgePoisonRequest>(), &purged), absl::OkStatus());
  EXPECT_EQ(purged.purged(), 1);
  EXPECT_THAT(Held(), ElementsAre("bob"));
}

TEST_F(HeldKeysServiceTest, RefusesToActOnNoKeysOrOnTwoChoices) {
  EXPECT_THAT(Fields(Release({}).status()), ElementsAre("all"));
  EXPECT_THAT(Fields(Release({"alice"}, /*all=*/true).status()), ElementsAre("all"));
  EXPECT_THAT(Fields(RedriveKeys({}).status()), ElementsAre("all"));
  EXPECT_THAT(Fields(Release(std::vector<std::string>(1001, "k")).status()), ElementsAre("keys"));
}

TEST_F(HeldKeysServiceTest, KnowsNoHeldKeysOfAQueueThatIsNotThere) {
  v1::ListHeldKeysResponse response;
  EXPECT_TRUE(absl::IsNotFound(
      Call(&Stub::ListHeldKeys, About<v1::ListHeldKeysRequest>("none"), &response)));
}

}  // namespace
}  // namespace muster::queue_admin
