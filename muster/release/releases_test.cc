// SPDX-License-Identifier: Apache-2.0
#include "muster/release/releases.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/text.h"
#include "muster/bus/local/local_buses.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::release {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class ReleasesTest : public ::testing::Test {
 protected:
  ReleasesTest() {
    subscription_ = bus_.Subscribe([this](const bus::InterRoleCommunicationEvent& event) {
                          const auto& released = std::get<bus::ReleasedEvent>(event.payload);
                          told_.emplace_back(released.release, released.epoch);
                        })
                        .value();
  }

  base::FakeClock clock_;
  sync::testing::MemorySyncStore store_;
  bus::local::LocalTriggerBus bus_;
  std::vector<std::pair<std::string, int64_t>> told_;
  std::unique_ptr<bus::TriggerBus::Subscription> subscription_;
  Releases releases_{&store_, &bus_, "initiator-1", &clock_};
};

TEST_F(ReleasesTest, HasEpochOneArmedUnderANameThatWasNeverUsed) {
  const ReleaseState state = releases_.Get("go").value();
  EXPECT_EQ(state.armed_epoch, 1);
  EXPECT_EQ(state.released_epoch, 0);
  EXPECT_FALSE(state.is_open());
  EXPECT_EQ(state.released, absl::InfinitePast());
  EXPECT_EQ(store_.writes_tried(), 0) << "looking makes no record";
}

TEST_F(ReleasesTest, ReleasesAndArmsInTurn) {
  const ReleaseState released = releases_.Release("go").value();
  EXPECT_EQ(released.released_epoch, 1);
  EXPECT_EQ(released.released, clock_.Now());
  EXPECT_TRUE(released.is_open());
  clock_.Advance(absl::Seconds(1));
  const ReleaseState armed = releases_.Arm("go").value();
  EXPECT_EQ(armed.armed_epoch, 2);
  EXPECT_EQ(armed.released_epoch, 1);
  EXPECT_EQ(armed.armed, clock_.Now());
  EXPECT_FALSE(armed.is_open());
  EXPECT_EQ(releases_.Release("go")->released_epoch, 2);
  EXPECT_THAT(told_, ElementsAre(Pair("go", 1), Pair("go", 2)));
}

TEST_F(ReleasesTest, ReleasingTwiceKeepsTheFirstTimeAndMulticastsAgain) {
  const absl::Time first = releases_.Release("go")->released;
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(releases_.Release("go")->released, first);
  EXPECT_EQ(store_.writes_tried(), 1);
  EXPECT_THAT(told_, ElementsAre(Pair("go", 1), Pair("go", 1)));
}

TEST_F(ReleasesTest, ArmingWhatIsArmedDoesNothing) {
  EXPECT_EQ(releases_.Arm("go")->armed_epoch, 1);
  EXPECT_EQ(store_.writes_tried(), 0);
}

// A caller whose connection broke does not know what became of its call. When it calls again,
// others may have gone on.
TEST_F(ReleasesTest, ACallThatIsRepeatedWithItsEpochReachesNoLaterOne) {
  ASSERT_TRUE(releases_.Release("go", 1).ok());
  ASSERT_TRUE(releases_.Arm("go", 1).ok());
  EXPECT_EQ(releases_.Release("go", 1)->released_epoch, 1);
  EXPECT_FALSE(releases_.Get("go")->is_open());
  ASSERT_TRUE(releases_.Release("go", 2).ok());
  EXPECT_EQ(releases_.Arm("go", 1)->armed_epoch, 2);
}

TEST_F(ReleasesTest, RefusesAnEpochThatIsNotThereYet) {
  EXPECT_EQ(releases_.Release("go", 2).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(releases_.Arm("go", 1).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(ReleasesTest, ALostRaceNeverLeadsToALaterEpoch) {
  store_.LoseNextWrites(3);
  EXPECT_EQ(releases_.Release("go")->released_epoch, 1);
  EXPECT_EQ(store_.writes_tried(), 4);
  store_.LoseNextWrites(100);
  EXPECT_EQ(releases_.Arm("go").status().code(), absl::StatusCode::kAborted);
}

TEST_F(ReleasesTest, IsReleasedThoughNobodyCanBeTold) {
  const auto refusing = bus_.Subscribe([&](const auto&) {
    EXPECT_TRUE(releases_.Release("other").ok()) << "a subscriber must not publish";
  });
  EXPECT_TRUE(releases_.Release("go").ok());
  EXPECT_TRUE(releases_.Get("other")->is_open());
}

TEST_F(ReleasesTest, AnErrorOfTheStoreMulticastsNothing) {
  store_.FailNextWrite(absl::UnavailableError("no answer"));
  EXPECT_EQ(releases_.Release("go").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_TRUE(releases_.Release("go").ok());
}

TEST_F(ReleasesTest, ListsThemByName) {
  for (const char* name : {"b", "c", "a"}) ASSERT_TRUE(releases_.Release(name).ok());
  std::vector<std::string> names;
  const std::vector<ReleaseState> all = releases_.List().value();
  for (const ReleaseState& state : all) names.push_back(state.name);
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
}

TEST_F(ReleasesTest, RefusesNamesThatAreNone) {
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a/b"),
                                  std::string("a\n"), std::string(kMaxNameBytes + 1, 'a')}) {
    EXPECT_EQ(releases_.Release(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(releases_.Get(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST_F(ReleasesTest, KeepsABoundedNumberOfNamesAndForgetsTheOneReleasedLongestAgo) {
  const std::string padding(kMaxNameBytes - 3, 'x');
  const auto name = [&](size_t i) { return absl::StrCat(padding, 100 + i); };
  for (size_t i = 0; i < kMaxReleases; ++i) {
    ASSERT_TRUE(releases_.Release(name(i)).ok()) << "all of them fit into the record";
    clock_.Advance(absl::Seconds(1));
  }
  ASSERT_TRUE(releases_.Arm(name(0)).ok()) << "workers may be waiting for it";
  EXPECT_EQ(releases_.Release("new").status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(releases_.Release(name(7)).ok());
  clock_.Advance(kForgetAfter);
  EXPECT_TRUE(releases_.Release("new").ok());
  EXPECT_EQ(releases_.List()->size(), kMaxReleases);
  EXPECT_EQ(releases_.Get(name(0))->armed_epoch, 2);
  EXPECT_FALSE(releases_.Get(name(1))->is_open()) << "it was forgotten";
  EXPECT_TRUE(releases_.Get(name(2))->is_open());
}

TEST_F(ReleasesTest, NamesTheRecordThatIsCorrupt) {
  for (const std::string& data : {std::string("\xff\xff"), base::BytesFromHex("0a060a02676f1801"),
                                  base::BytesFromHex("0a080a02676f10011802")}) {
    store_.Overwrite(kReleasesKey, data);
    const absl::Status status = releases_.Get("go").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << absl::BytesToHexString(data);
    EXPECT_THAT(std::string(status.message()), HasSubstr("'releases'"));
  }
}

// To change the form, add fields, and a golden test beside this one.
TEST_F(ReleasesTest, WritesTheBytesThatEveryReleaseOfMusterReads) {
  ASSERT_TRUE(releases_.Release("go").ok());
  ASSERT_TRUE(releases_.Arm("go").ok());
  const std::string golden = base::BytesFromHex(
      "0a18"
      "0a02676f"  // name
      "1002"
      "1801"              // armed_epoch, released_epoch
      "22060880cbf1f504"  // armed
      "2a060880cbf1f504"  // released
  );
  EXPECT_EQ(absl::BytesToHexString(store_.Get(kReleasesKey)->data), absl::BytesToHexString(golden));
}

TEST_F(ReleasesTest, KeepsWhatANewerMusterHasAdded) {
  const std::string newer = base::BytesFromHex("0a0c0a02676f1001a206036e6577a206036e6577");
  store_.Overwrite(kReleasesKey, newer);
  ASSERT_TRUE(releases_.Release("go").ok());
  const std::string data = store_.Get(kReleasesKey)->data;
  EXPECT_THAT(absl::BytesToHexString(data), HasSubstr("a206036e6577"));
  EXPECT_EQ(StateIn(data, "go")->released_epoch, 1);
}

}  // namespace
}  // namespace muster::release
