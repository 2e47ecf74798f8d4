// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/schedule/runner.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/blob/file/file_blob_store.h"
#include "muster/os/temp_dir.h"
#include "muster/schedule/limits.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// The batches of a mesh: one for each request id, whichever initiator submits it.
class Batches {
 public:
  Submit Submitter() {
    return [this](const v1::SubmitHeader& header,
                  const std::string& content) -> absl::StatusOr<uint64_t> {
      base::MutexLock lock(&mu_);
      ++calls_;
      if (!refusal_.ok()) return refusal_;
      last_ = header;
      last_content_ = content;
      order_.push_back(header.labels().at("schedule"));
      const auto [it, is_new] = batches_.emplace(header.request_id(), batches_.size() + 1);
      return it->second;
    };
  }
  void Refuse(absl::Status why) {
    base::MutexLock lock(&mu_);
    refusal_ = std::move(why);
  }
  // The times of the occurrences.
  std::vector<std::string> Submitted() const {
    base::MutexLock lock(&mu_);
    std::vector<std::string> times;
    for (const auto& [id, batch] : batches_) times.push_back(id.substr(id.size() - 20));
    return times;
  }
  // The schedules, in the order of their submissions.
  std::vector<std::string> Order() const {
    base::MutexLock lock(&mu_);
    return order_;
  }
  int calls() const {
    base::MutexLock lock(&mu_);
    return calls_;
  }
  v1::SubmitHeader last() const {
    base::MutexLock lock(&mu_);
    return last_;
  }
  std::string last_content() const {
    base::MutexLock lock(&mu_);
    return last_content_;
  }

 private:
  mutable base::Mutex mu_;
  std::map<std::string, uint64_t> batches_ ABSL_GUARDED_BY(mu_);
  absl::Status refusal_ ABSL_GUARDED_BY(mu_);
  v1::SubmitHeader last_ ABSL_GUARDED_BY(mu_);
  std::string last_content_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> order_ ABSL_GUARDED_BY(mu_);
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
};

// FakeClock begins at 2011-11-11T00:00:00Z.
class RunnerTest : public ::testing::Test {
 protected:
  std::unique_ptr<ScheduleRunner> MakeRunner(const std::string& owner) {
    return std::make_unique<ScheduleRunner>(
        ScheduleRunner::Dependencies{&store_, &clock_, owner, batches_.Submitter()});
  }
  void Make(const std::string& name, const std::string& cron,
            v1::CatchUp catch_up = v1::CATCH_UP_ONCE) {
    v1::ScheduleSpec spec;
    spec.set_name(name);
    spec.set_job("retail");
    spec.set_cron(cron);
    spec.set_catch_up(catch_up);
    ASSERT_TRUE(store_.Create(spec, "content").ok());
  }
  v1::ScheduleRecord Record(const std::string& name) { return store_.Find(name)->record; }
  // Lets `runners` sleep again after what the step of the clock has woken.
  void Pass(absl::Duration time, int runners = 1) {
    for (absl::Duration passed; passed < time; passed += kLookInterval) {
      clock_.Advance(std::min(kLookInterval, time - passed));
      clock_.AwaitSleepers(runners);
    }
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  sync::testing::MemorySyncStore records_;
  const std::unique_ptr<blob::BlobStore> blobs_ =
      blob::file::FileBlobStore::Open(dir_.path() + "/blobs").value();
  muster::schedule::ScheduleStore store_{&records_, blobs_.get(), &clock_};
  Batches batches_;
};

TEST_F(RunnerTest, SubmitsEachOccurrenceAtItsTime) {
  Make("often", "*/5 * * * *");
  const auto runner = MakeRunner("a");
  runner->Start();
  clock_.AwaitSleepers(1);
  Pass(absl::Minutes(5) - absl::Seconds(1));
  EXPECT_THAT(batches_.Submitted(), IsEmpty());
  Pass(absl::Seconds(1));
  EXPECT_THAT(batches_.Submitted(), ElementsAre("2011-11-11T00:05:00Z"));
  Pass(absl::Minutes(10));
  EXPECT_THAT(batches_.Submitted(),
              ElementsAre("2011-11-11T00:05:00Z", "2011-11-11T00:10:00Z", "2011-11-11T00:15:00Z"));
  EXPECT_EQ(batches_.last().job(), "retail");
  EXPECT_EQ(batches_.last().labels().at("schedule"), "often");
  EXPECT_EQ(batches_.last_content(), "content");
  EXPECT_EQ(Record("often").submitted(), 3);
  EXPECT_EQ(Record("often").last_batch(), 3u);
  EXPECT_EQ(runner->counts().submitted, 3);
  EXPECT_EQ(runner->counts().active, 1);
}

TEST_F(RunnerTest, WithoutWorkItSleepsAndReadsOneRecordALook) {
  const auto runner = MakeRunner("a");
  runner->Start();
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline(), clock_.Monotonic() + kLookInterval);
  Pass(absl::Minutes(10));
  EXPECT_EQ(records_.writes_tried(), 0);
}

TEST_F(RunnerTest, OfTwoRunnersOneSubmits) {
  Make("often", "* * * * *");
  const auto a = MakeRunner("a"), b = MakeRunner("b");
  a->Start();
  b->Start();
  clock_.AwaitSleepers(2);
  Pass(absl::Minutes(30), 2);
  EXPECT_EQ(batches_.Submitted().size(), 30u);
  EXPECT_EQ(batches_.calls(), 30);
  EXPECT_EQ(Record("often").submitted(), 30);
  EXPECT_EQ(a->counts().submitted + b->counts().submitted, 30);
}

TEST_F(RunnerTest, ANewScheduleIsSeenWithinAnIntervalOrWhenItIsWoken) {
  const auto a = MakeRunner("a");
  a->Start();
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Seconds(55));  // it slept for 10
  clock_.AwaitSleepers(1);
  Make("often", "* * * * *");
  a->Wake("often");
  clock_.AwaitSleepers(1);
  while (clock_.NextDeadline() - clock_.Monotonic() > absl::Seconds(5)) clock_.AwaitSleepers(1);
  Pass(absl::Seconds(5));
  EXPECT_THAT(batches_.Submitted(), ElementsAre("2011-11-11T00:01:00Z"));
}

TEST_F(RunnerTest, AnUpdateElsewhereIsSeenWithinAnIntervalAlsoWhenItOccursSooner) {
  Make("yearly", "@yearly");
  const auto runner = MakeRunner("a");
  runner->Start();
  clock_.AwaitSleepers(1);
  v1::ScheduleSpec spec = Record("yearly").spec();
  spec.set_cron("* * * * *");
  ASSERT_TRUE(store_.Update(spec, 1).ok());
  Pass(absl::Minutes(1) - kLookInterval);
  EXPECT_THAT(batches_.Submitted(), IsEmpty());
  Pass(kLookInterval);
  EXPECT_THAT(batches_.Submitted(), ElementsAre("2011-11-11T00:01:00Z"));
  spec.set_cron("@yearly");
  ASSERT_TRUE(store_.Update(spec, 2).ok());
  Pass(absl::Minutes(3));
  EXPECT_EQ(batches_.calls(), 1) << "the old calendar is forgotten";
  runner->Stop();
}

TEST_F(RunnerTest, AnotherTakesOverFromARunnerThatDiedWhileItTried) {
  Make("hourly", "0 * * * *");
  clock_.Advance(absl::Hours(1));
  {
    // What a runner leaves that dies between its first write and its submit.
    auto stored = store_.Find("hourly").value();
    const auto calendar = muster::schedule::Calendar::Of(stored.record.spec()).value();
    ASSERT_TRUE(muster::schedule::MakePlan(calendar, clock_.Now(), "dead", &stored.record)
                    .occurrence.has_value());
    ASSERT_TRUE(store_.TryWrite(stored).value());
  }
  const auto b = MakeRunner("b");
  b->Start();
  clock_.AwaitSleepers(1);
  EXPECT_THAT(batches_.Submitted(), IsEmpty());
  Pass(muster::schedule::kTryTime);
  EXPECT_THAT(batches_.Submitted(), ElementsAre("2011-11-11T01:00:00Z"));
  EXPECT_EQ(Record("hourly").submitted(), 1);
}

TEST_F(RunnerTest, WhatWasRefusedIsTriedAgainAndShown) {
  Make("hourly", "0 * * * *");
  const auto runner = MakeRunner("a");
  runner->Start();
  clock_.AwaitSleepers(1);
  batches_.Refuse(absl::ResourceExhaustedError("too much waits"));
  Pass(absl::Hours(1) + absl::Minutes(5));
  EXPECT_EQ(Record("hourly").problem(), "too much waits");
  EXPECT_EQ(runner->counts().with_problem, 1);
  const int tries = batches_.calls();
  EXPECT_GT(tries, 5);
  EXPECT_LT(tries, 15);
  batches_.Refuse(absl::OkStatus());
  Pass(absl::Minutes(2));
  EXPECT_THAT(batches_.Submitted(), ElementsAre("2011-11-11T01:00:00Z"));
  EXPECT_EQ(Record("hourly").problem(), "");
  EXPECT_EQ(runner->counts().with_problem, 0);
}

TEST_F(RunnerTest, WhatIsRefusedUntilTheNextOccurrenceIsCountedAsFailed) {
  Make("hourly", "0 * * * *");
  const auto runner = MakeRunner("a");
  runner->Start();
  clock_.AwaitSleepers(1);
  batches_.Refuse(absl::NotFoundError("no job 'retail'"));
  Pass(absl::Hours(2));
  EXPECT_EQ(Record("hourly").failed(), 1);
  EXPECT_EQ(runner->counts().failed, 1);
  EXPECT_EQ(Record("hourly").problem(), "no job 'retail'");
}

TEST_F(RunnerTest, WhatWasMissedWhileNoneRanIsCaughtUpByTheRule) {
  Make("none", "0 * * * *", v1::CATCH_UP_NONE);
  Make("once", "0 * * * *", v1::CATCH_UP_ONCE);
  Make("all", "0 * * * *", v1::CATCH_UP_ALL);
  clock_.Advance(absl::Hours(3) + absl::Minutes(30));
  const auto runner = MakeRunner("a");
  runner->Start();
  clock_.AwaitSleepers(1);
  EXPECT_THAT(batches_.Submitted(),
              UnorderedElementsAre("2011-11-11T01:00:00Z", "2011-11-11T02:00:00Z",
                                   "2011-11-11T03:00:00Z", "2011-11-11T03:00:00Z"));
  EXPECT_EQ(runner->counts().missed, 5);
  EXPECT_EQ(Record("none").missed(), 3);
  EXPECT_EQ(Record("once").missed(), 2);
  EXPECT_EQ(Record("all").missed(), 0);
}

TEST_F(RunnerTest, OneThatMakesUpForManyOccurrencesLetsOthersComeBetween) {
  Make("all", "0 * * * *", v1::CATCH_UP_ALL);
  Make("once", "0 * * * *", v1::CATCH_UP_ONCE);
  clock_.Advance(absl::Hours(3) + absl::Minutes(30));
  const auto runner = MakeRunner("a");
  runner->Start();
  clock_.AwaitSleepers(1);
  EXPECT_THAT(batches_.Order(), ElementsAre("all", "once", "all", "all"));
}

TEST_F(RunnerTest, AClockThatIsSetBackDelaysNoTry) {
  Make("hourly", "0 * * * *");
  const auto runner = MakeRunner("a");
  runner->Start();
  clock_.AwaitSleepers(1);
  batches_.Refuse(absl::NotFoundError("no job 'retail'"));
  Pass(absl::Hours(1) + absl::Minutes(5));
  const int tries = batches_.calls();
  clock_.StepWallClock(-absl::Hours(1));
  Pass(absl::Minutes(3));
  EXPECT_GT(batches_.calls(), tries);
}

TEST_F(RunnerTest, AScheduleThatEndedIsRemovedAWeekLater) {
  v1::ScheduleSpec spec;
  spec.set_name("soon");
  spec.set_job("retail");
  *spec.mutable_at() = base::ToProto(clock_.Now() + absl::Seconds(7));
  ASSERT_TRUE(store_.Create(spec, std::string(20000, 'x')).ok());
  const auto runner = MakeRunner("a");
  runner->Start();
  clock_.AwaitSleepers(1);
  Pass(absl::Seconds(7));
  EXPECT_THAT(batches_.Submitted(), ElementsAre("2011-11-11T00:00:07Z"));
  EXPECT_EQ(batches_.last_content().size(), 20000u);
  EXPECT_TRUE(Record("soon").has_ended());
  clock_.Advance(muster::schedule::kKeepEnded - absl::Seconds(1));
  clock_.AwaitSleepers(1);
  EXPECT_EQ(store_.List()->size(), 1u);
  Pass(absl::Seconds(1));
  EXPECT_TRUE(store_.List()->empty());
}

// As behind a store that is slow.
TEST_F(RunnerTest, SubmitsWhatHasATimeThatPassedWhileItWasMade) {
  v1::ScheduleSpec spec;
  spec.set_name("soon");
  spec.set_job("retail");
  *spec.mutable_at() = base::ToProto(clock_.Now() - absl::Seconds(1));
  ASSERT_TRUE(store_.Create(spec, "content").ok());
  const auto runner = MakeRunner("a");
  runner->Start();
  clock_.AwaitSleepers(1);
  EXPECT_THAT(batches_.Submitted(), ElementsAre("2011-11-10T23:59:59Z"));
  EXPECT_TRUE(Record("soon").has_ended());
}

TEST_F(RunnerTest, WhatADeadCreationLeftIsRemoved) {
  v1::ScheduleDirectory directory;
  v1::ScheduleEntry* const entry = directory.add_schedules();
  entry->set_name("half");
  entry->set_id("12345678");
  records_.Overwrite(muster::schedule::kDirectoryKey, directory.SerializeAsString());
  const auto runner = MakeRunner("a");
  runner->Start();
  clock_.AwaitSleepers(1);
  Pass(muster::schedule::kLeftoverAge - absl::Seconds(1));
  EXPECT_EQ(store_.List()->size(), 1u);
  Pass(absl::Seconds(1));
  EXPECT_TRUE(store_.List()->empty());
}

TEST_F(RunnerTest, AStoreThatIsAwayDelaysWhatIsDueAndLosesNothing) {
  Make("often", "* * * * *", v1::CATCH_UP_ALL);
  const auto runner = MakeRunner("a");
  runner->Start();
  clock_.AwaitSleepers(1);
  for (int i = 0; i < 12; ++i) records_.FailNextGet(absl::UnavailableError("away"));
  Pass(absl::Minutes(2) + absl::Seconds(10));
  Pass(absl::Seconds(10));
  EXPECT_THAT(batches_.Submitted(), ElementsAre("2011-11-11T00:01:00Z", "2011-11-11T00:02:00Z"));
}

TEST_F(RunnerTest, AfterAWriteOfUnknownOutcomeTheSameBatchIsFound) {
  Make("often", "* * * * *");
  const auto runner = MakeRunner("a");
  runner->Start();
  clock_.AwaitSleepers(1);
  Pass(absl::Seconds(50));
  // The submit is made, and then its note fails.
  records_.LoseNextWrites(1);
  Pass(absl::Minutes(1));
  EXPECT_EQ(batches_.Submitted().size(), 1u);
  EXPECT_EQ(Record("often").submitted(), 1);
}

}  // namespace
}  // namespace muster::initiator::schedule
