// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/leader_election.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/random.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/test_seed.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::scaling_agent {
namespace {

using ::testing::Eq;
using ::testing::Optional;

// Writes the record, and then reports a failure.
class ForgetfulStore final : public sync::OptimisticSyncStore {
 public:
  explicit ForgetfulStore(sync::OptimisticSyncStore* behind) : behind_(behind) {}

  absl::StatusOr<sync::VersionedData> Get(absl::string_view key) override {
    return behind_->Get(key);
  }
  absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                uint64_t version) override {
    auto written = behind_->TryWrite(key, data, version);
    if (loses_answers) return absl::UnavailableError("the answer was lost");
    return written;
  }
  absl::StatusOr<bool> TryDelete(absl::string_view key, uint64_t version) override {
    return behind_->TryDelete(key, version);
  }

  bool loses_answers = false;

 private:
  sync::OptimisticSyncStore* const behind_;
};

class LeaderElectionTest : public ::testing::Test {
 protected:
  LeaderElection Candidate(const std::string& name) {
    return LeaderElection({name, absl::StrCat(name, ":7703")}, &store_, &clock_);
  }
  // Returns the result of a step; "error" stands for every error.
  static std::string Step(LeaderElection* election) {
    const absl::StatusOr<bool> led = election->Hold();
    if (!led.ok()) return "error";
    return *led ? "leads" : "follows";
  }

  base::FakeClock clock_;
  sync::testing::MemorySyncStore memory_;
  ForgetfulStore store_{&memory_};
};

TEST_F(LeaderElectionTest, TheFirstOneLeadsAndTheOthersKnowWhere) {
  LeaderElection a = Candidate("a"), b = Candidate("b");
  EXPECT_EQ(a.Token(), std::nullopt);
  EXPECT_EQ(Step(&a), "leads");
  EXPECT_EQ(Step(&b), "follows");
  EXPECT_THAT(a.Token(), Optional(Eq(1)));
  EXPECT_EQ(b.Token(), std::nullopt);
  EXPECT_EQ(b.leader().holder, "a");
  EXPECT_EQ(b.leader().address, "a:7703");
  EXPECT_EQ(a.leader().holder, "a");
}

TEST_F(LeaderElectionTest, KeepsItsTokenAsLongAsItRenews) {
  LeaderElection a = Candidate("a"), b = Candidate("b");
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Step(&a), "leads");
    EXPECT_EQ(Step(&b), "follows");
    EXPECT_THAT(a.Token(), Optional(Eq(1)));
    clock_.Advance(kLeaseStep);
  }
}

TEST_F(LeaderElectionTest, AnotherTakesOverWithinFiveSecondsOfADeath) {
  LeaderElection a = Candidate("a"), b = Candidate("b");
  EXPECT_EQ(Step(&a), "leads");
  EXPECT_EQ(Step(&b), "follows");
  // The leader that dies writes its last heartbeat right after the other candidate's look.
  EXPECT_EQ(Step(&a), "leads");
  absl::Duration waited = absl::ZeroDuration();
  do {
    clock_.Advance(kLeaseStep);
    waited += kLeaseStep;
  } while (Step(&b) != "leads");
  EXPECT_LE(waited, absl::Seconds(5));
  EXPECT_THAT(b.Token(), Optional(Eq(2)));
  EXPECT_EQ(Step(&a), "follows");
}

TEST_F(LeaderElectionTest, DoesNotActAnyMoreWhenItsOwnTimeMayHaveRunOut) {
  LeaderElection a = Candidate("a"), b = Candidate("b");
  EXPECT_EQ(Step(&a), "leads");
  EXPECT_EQ(Step(&b), "follows");
  clock_.Advance(kLeaseDuration - kLeaseDuration / 10);
  EXPECT_EQ(a.Token(), std::nullopt);
  EXPECT_EQ(Step(&b), "follows") << "others wait a little longer than the holder";
}

TEST_F(LeaderElectionTest, SaysUntilWhenItsTokenHoldsAndEachRenewalPutsThatOff) {
  LeaderElection a = Candidate("a");
  EXPECT_FALSE(a.Held().has_value());
  for (int i = 0; i < 3; ++i) {
    const absl::Duration began = clock_.Monotonic();
    EXPECT_EQ(Step(&a), "leads");
    ASSERT_TRUE(a.Held().has_value());
    EXPECT_EQ(a.Held()->token, 1);
    EXPECT_EQ(a.Held()->until, began + kLeaseDuration - kLeaseDuration / 10);
    clock_.Advance(kLeaseStep);
  }
  clock_.Advance(a.Held()->until - clock_.Monotonic());
  EXPECT_FALSE(a.Held().has_value());
}

TEST_F(LeaderElectionTest, LeadsOnAfterAnOutageInWhichNobodyElseDid) {
  LeaderElection a = Candidate("a");
  EXPECT_EQ(Step(&a), "leads");
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(a.Token(), std::nullopt);
  EXPECT_EQ(Step(&a), "leads");
  EXPECT_THAT(a.Token(), Optional(Eq(1)));
}

TEST_F(LeaderElectionTest, AStoreThatFailsLetsTheLeadRunOut) {
  LeaderElection a = Candidate("a");
  EXPECT_EQ(Step(&a), "leads");
  clock_.Advance(absl::Seconds(1));
  memory_.FailNextGet(absl::UnavailableError("down"));
  EXPECT_EQ(Step(&a), "error");
  EXPECT_TRUE(a.Token().has_value()) << "the lease is still ours";
  clock_.Advance(kLeaseDuration);
  memory_.FailNextGet(absl::UnavailableError("down"));
  EXPECT_EQ(Step(&a), "error");
  EXPECT_EQ(a.Token(), std::nullopt);
}

TEST_F(LeaderElectionTest, KnowsItsOwnRecordThoughTheAnswerWasLost) {
  LeaderElection a = Candidate("a"), b = Candidate("b");
  store_.loses_answers = true;
  EXPECT_EQ(Step(&a), "error");
  EXPECT_EQ(a.Token(), std::nullopt);
  EXPECT_EQ(Step(&b), "follows") << "the record is there";
  store_.loses_answers = false;
  EXPECT_EQ(Step(&a), "leads");
  EXPECT_THAT(a.Token(), Optional(Eq(1)));
}

TEST_F(LeaderElectionTest, AnEarlierProcessOfTheSameNameIsAnother) {
  LeaderElection before = Candidate("a");
  EXPECT_EQ(Step(&before), "leads");
  LeaderElection after = Candidate("a");
  EXPECT_EQ(Step(&after), "follows");
  clock_.Advance(kLeaseDuration);
  EXPECT_EQ(Step(&after), "leads");
  EXPECT_THAT(after.Token(), Optional(Eq(2)));
  EXPECT_EQ(Step(&before), "follows");
}

TEST_F(LeaderElectionTest, WhoLosesTheRaceFollows) {
  LeaderElection a = Candidate("a");
  memory_.LoseNextWrites(1);
  EXPECT_EQ(Step(&a), "follows");
  EXPECT_EQ(a.Token(), std::nullopt);
  EXPECT_EQ(Step(&a), "leads");
}

TEST_F(LeaderElectionTest, WhatIsReleasedIsTakenAtOnce) {
  LeaderElection a = Candidate("a"), b = Candidate("b");
  EXPECT_EQ(Step(&a), "leads");
  EXPECT_EQ(Step(&b), "follows");
  EXPECT_TRUE(a.Release().ok());
  EXPECT_EQ(a.Token(), std::nullopt);
  EXPECT_EQ(Step(&b), "leads");
  EXPECT_THAT(b.Token(), Optional(Eq(2)));
  EXPECT_TRUE(a.Release().ok()) << "it is not ours";
  EXPECT_TRUE(b.Token().has_value());
}

TEST_F(LeaderElectionTest, AFailedReleaseLeadsNoMoreAllTheSame) {
  LeaderElection a = Candidate("a");
  EXPECT_EQ(Step(&a), "leads");
  memory_.FailNextGet(absl::UnavailableError("down"));
  EXPECT_FALSE(a.Release().ok());
  EXPECT_EQ(a.Token(), std::nullopt);
}

TEST_F(LeaderElectionTest, ARecordThatIsNoneIsAnErrorThatNamesIt) {
  LeaderElection a = Candidate("a");
  for (const std::string text : {"", "nonsense", "[]", "{}", R"({"version":1,"token":"x"})"}) {
    memory_.Overwrite(kLeaderKey, text);
    const absl::Status status = a.Hold().status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << text << ": " << status;
    EXPECT_THAT(status.ToString(), ::testing::HasSubstr(kLeaderKey));
  }
  memory_.Overwrite(kLeaderKey, R"({"version":2})");
  EXPECT_TRUE(absl::IsFailedPrecondition(a.Hold().status()));
  EXPECT_EQ(a.Token(), std::nullopt);
}

// Three candidates use one store, which fails and forgets at random; some candidates sleep for a
// while. By every candidate's own clock at most one leads, and tokens only grow.
TEST_F(LeaderElectionTest, NeverAreThereTwo) {
  const uint64_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  const base::UniformSource uniform = base::SeededUniform(seed);
  std::vector<std::unique_ptr<LeaderElection>> all;
  for (const char* name : {"a", "b", "c"}) {
    all.push_back(std::make_unique<LeaderElection>(ElectionOptions{name, name}, &store_, &clock_));
  }
  int64_t highest = 0;
  int terms = 0;
  for (int step = 0; step < 20'000; ++step) {
    clock_.Advance(absl::Milliseconds(400) * uniform());
    store_.loses_answers = uniform() < 0.1;
    if (uniform() < 0.1) memory_.FailNextGet(absl::UnavailableError("down"));
    LeaderElection& one = *all[static_cast<size_t>(uniform() * 2.999)];
    if (uniform() < 0.01) clock_.Advance(absl::Seconds(10) * uniform());
    one.Hold().IgnoreError();
    if (uniform() < 0.01) one.Release().IgnoreError();
    int leaders = 0;
    for (const auto& each : all) {
      const std::optional<int64_t> token = each->Token();
      if (!token.has_value()) continue;
      ++leaders;
      EXPECT_GE(*token, highest);
      if (*token > highest) ++terms;
      highest = *token;
    }
    ASSERT_LE(leaders, 1) << "at step " << step;
  }
  EXPECT_GT(terms, 10);
}

// Others would cut the lease to kMaxLeaseDuration, and lead while this agent still does.
TEST(LeaderElectionDeathTest, NoLeaseIsLongerThanOthersBelieve) {
  base::FakeClock clock;
  sync::testing::MemorySyncStore store;
  const ElectionOptions options{"a", "a:7703", kMaxLeaseDuration + absl::Seconds(1)};
  EXPECT_DEATH(LeaderElection(options, &store, &clock), "lease of 1h1s, at most 1h");
}

}  // namespace
}  // namespace muster::scaling_agent
