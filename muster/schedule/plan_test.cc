// SPDX-License-Identifier: Apache-2.0
#include "muster/schedule/plan.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/rpc/status.h"
#include "muster/schedule/limits.h"

namespace muster::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Time At(absl::string_view clock) {
  return ParseMoment(absl::StrCat("2026-12-01T", clock, "Z")).value();
}

// A schedule that was made at midnight, and the initiators that look after it.
absl::Status TooMuchWaits() {
  return rpc::WithReason(absl::ResourceExhaustedError("full"), {"DRAIN_TOO_LONG", {}});
}

class PlanTest : public ::testing::Test {
 protected:
  explicit PlanTest(v1::CatchUp catch_up = v1::CATCH_UP_ONCE) {
    record_.set_id("12345678");
    record_.mutable_spec()->set_name("nightly");
    record_.mutable_spec()->set_cron("0 * * * *");
    record_.mutable_spec()->set_catch_up(catch_up);
    *record_.mutable_decided() = base::ToProto(At("00:00:00"));
  }
  void Once(absl::Time when) { *record_.mutable_spec()->mutable_at() = base::ToProto(when); }

  Plan Look(absl::Time now, absl::string_view owner = "a") {
    return MakePlan(Calendar::Of(record_.spec()).value(), now, owner, &record_);
  }
  // Submits all that is due, as hours, and minutes where there are any.
  std::vector<std::string> Submit(absl::Time now) {
    std::vector<std::string> submitted;
    for (Plan plan = Look(now); plan.occurrence.has_value(); plan = Look(now)) {
      EXPECT_TRUE(NoteSubmitted(*plan.occurrence, 7, now, &record_));
      submitted.push_back(absl::FormatTime("%H:%M", *plan.occurrence, absl::UTCTimeZone()));
    }
    return submitted;
  }
  // Tries what is due at `now`, which is refused.
  void Refuse(absl::Time now, const absl::Status& why = TooMuchWaits()) {
    const Plan plan = Look(now);
    ASSERT_TRUE(plan.occurrence.has_value());
    ASSERT_TRUE(NoteRefused(*plan.occurrence, why, now, &record_));
  }

  v1::ScheduleRecord record_;
};

class NonePlanTest : public PlanTest {
 protected:
  NonePlanTest() : PlanTest(v1::CATCH_UP_NONE) {}
};
class AllPlanTest : public PlanTest {
 protected:
  AllPlanTest() : PlanTest(v1::CATCH_UP_ALL) {}
};

TEST_F(PlanTest, NothingIsDoneBeforeTheFirstOccurrence) {
  const Plan plan = Look(At("00:59:59"));
  EXPECT_EQ(plan.occurrence, std::nullopt);
  EXPECT_FALSE(plan.changed);
  EXPECT_EQ(plan.look_again, At("01:00:00"));
}

TEST_F(PlanTest, AnOccurrenceIsBegunInTheRecordAndSubmittedOnce) {
  const Plan plan = Look(At("01:00:00"));
  EXPECT_EQ(plan.occurrence, At("01:00:00"));
  EXPECT_TRUE(plan.changed);
  EXPECT_EQ(record_.attempt().owner(), "a");
  EXPECT_TRUE(NoteSubmitted(At("01:00:00"), 7, At("01:00:01"), &record_));
  EXPECT_EQ(record_.last_batch(), 7u);
  EXPECT_EQ(record_.submitted(), 1);
  EXPECT_FALSE(record_.has_attempt());
  EXPECT_EQ(Look(At("01:00:01")).look_again, At("02:00:00"));
  EXPECT_FALSE(NoteSubmitted(At("01:00:00"), 8, At("01:00:01"), &record_));
  EXPECT_EQ(record_.submitted(), 1);
}

TEST_F(PlanTest, AClockThatIsSetBackRepeatsNothing) {
  EXPECT_THAT(Submit(At("01:00:00")), ElementsAre("01:00"));
  EXPECT_THAT(Submit(At("00:30:00")), IsEmpty());
  EXPECT_THAT(Submit(At("01:00:00")), IsEmpty());
  EXPECT_EQ(Look(At("00:30:00")).look_again, At("02:00:00"));
}

TEST_F(PlanTest, OfWhatWasMissedOnceSubmitsTheLast) {
  EXPECT_THAT(Submit(At("05:30:00")), ElementsAre("05:00"));
  EXPECT_EQ(record_.missed(), 4);
  EXPECT_EQ(record_.submitted(), 1);
  EXPECT_THAT(Submit(At("06:00:00")), ElementsAre("06:00"));
}

TEST_F(NonePlanTest, OfWhatWasMissedNoneSubmitsNothing) {
  const Plan plan = Look(At("05:30:00"));
  EXPECT_EQ(plan.occurrence, std::nullopt);
  EXPECT_TRUE(plan.changed);
  EXPECT_EQ(plan.missed, 5);
  EXPECT_EQ(record_.missed(), 5);
  EXPECT_EQ(record_.problem(), "missed 5 occurrences, the last one that of 2026-12-01T05:00:00Z");
  EXPECT_THAT(Submit(At("06:00:59")), ElementsAre("06:00"));
  EXPECT_EQ(record_.problem(), "");
}

TEST_F(NonePlanTest, AnOccurrenceThatWasBegunInTimeIsNotMissed) {
  EXPECT_EQ(Look(At("01:00:00")).occurrence, At("01:00:00"));  // and its initiator dies
  EXPECT_EQ(Look(At("01:45:00"), "b").occurrence, At("01:00:00"));
  EXPECT_TRUE(NoteSubmitted(At("01:00:00"), 7, At("01:45:00"), &record_));
  EXPECT_EQ(record_.missed(), 0);
}

TEST_F(AllPlanTest, OfWhatWasMissedAllSubmitsEachInOrder) {
  EXPECT_THAT(Submit(At("05:30:00")), ElementsAre("01:00", "02:00", "03:00", "04:00", "05:00"));
  EXPECT_EQ(record_.missed(), 0);
  EXPECT_EQ(record_.submitted(), 5);
}

TEST_F(AllPlanTest, OfMoreThanItsBoundTheOldestAreMissed) {
  record_.mutable_spec()->set_cron("* * * * *");
  const absl::Time now = At("00:00:00") + absl::Minutes(1100);
  EXPECT_EQ(Look(now).occurrence, At("00:00:00") + absl::Minutes(101));
  EXPECT_EQ(record_.missed(), 100);
  EXPECT_THAT(record_.problem(), HasSubstr("missed 100 occurrences"));
}

TEST_F(AllPlanTest, WhatIsOlderThanAYearIsPassedOver) {
  record_.mutable_spec()->set_cron("0 0 1 * *");
  const absl::Time now = At("12:00:00") + absl::Hours(24 * 365 * 3);
  EXPECT_EQ(Submit(now).size(), 12u);  // from 2028-12 to 2029-11
}

TEST_F(AllPlanTest, ARefusedOccurrenceKeepsItsTurn) {
  Refuse(At("01:00:00"));
  const Plan plan = Look(At("02:30:00"));
  EXPECT_EQ(plan.occurrence, At("01:00:00"));
  EXPECT_TRUE(NoteSubmitted(At("01:00:00"), 7, At("02:30:00"), &record_));
  EXPECT_THAT(Submit(At("02:30:00")), ElementsAre("02:00"));
  EXPECT_EQ(record_.failed(), 0);
}

TEST_F(PlanTest, WhileOneInitiatorTriesTheOthersWait) {
  EXPECT_EQ(Look(At("01:00:00"), "a").occurrence, At("01:00:00"));
  const Plan other = Look(At("01:00:01"), "b");
  EXPECT_EQ(other.occurrence, std::nullopt);
  EXPECT_FALSE(other.changed);
  EXPECT_EQ(other.look_again, At("01:00:30"));
  EXPECT_EQ(Look(At("01:00:30"), "b").occurrence, At("01:00:00"));
  EXPECT_EQ(record_.attempt().owner(), "b");
  EXPECT_EQ(record_.attempt().tries(), 2);
}

TEST_F(PlanTest, AnInitiatorThatComesBackGoesOnAtOnce) {
  EXPECT_EQ(Look(At("01:00:00"), "a").occurrence, At("01:00:00"));
  EXPECT_EQ(Look(At("01:00:02"), "a").occurrence, At("01:00:00"));
}

TEST_F(PlanTest, ARefusedOccurrenceIsTriedAgainAfterLongerAndLongerWaits) {
  absl::Time now = At("01:00:00");
  for (const int seconds : {1, 2, 4, 8, 16, 32, 60, 60}) {
    Refuse(now);
    EXPECT_EQ(record_.problem(), "full");
    for (const char* owner : {"a", "b"}) {
      const Plan plan = Look(now, owner);
      EXPECT_EQ(plan.occurrence, std::nullopt);
      EXPECT_EQ(plan.look_again, now + absl::Seconds(seconds));
    }
    now += absl::Seconds(seconds);
  }
  EXPECT_EQ(base::FromProto(record_.problem_since()), At("01:00:00"));
  EXPECT_THAT(Submit(now), ElementsAre("01:00"));
  EXPECT_EQ(record_.problem(), "");
  EXPECT_FALSE(record_.has_problem_since());
}

TEST_F(PlanTest, ARefusalMaySayWhenToComeAgain) {
  Refuse(At("01:00:00"), rpc::WithRetryAfter(TooMuchWaits(), absl::Seconds(20)));
  EXPECT_EQ(Look(At("01:00:00")).look_again, At("01:00:20"));
  Refuse(At("01:00:20"), rpc::WithRetryAfter(TooMuchWaits(), absl::Hours(2)));
  EXPECT_EQ(Look(At("01:00:20")).look_again, At("01:01:20"));
}

TEST_F(PlanTest, WhatIsRefusedUntilTheNextOccurrenceHasFailed) {
  Refuse(At("01:59:30"));
  EXPECT_EQ(Look(At("01:59:30")).look_again, At("01:59:31"));
  Refuse(At("01:59:31"));
  const Plan plan = Look(At("02:00:00"));
  EXPECT_EQ(plan.failed, 1);
  EXPECT_EQ(plan.occurrence, At("02:00:00"));
  EXPECT_EQ(record_.failed(), 1);
  EXPECT_EQ(record_.problem(), "full");
}

TEST_F(PlanTest, AnOccurrenceWhoseOutcomeIsUnknownIsTriedOnceMoreBeforeItIsGivenUp) {
  EXPECT_EQ(Look(At("01:00:00"), "a").occurrence, At("01:00:00"));  // and "a" dies
  EXPECT_EQ(Look(At("09:00:00"), "b").occurrence, At("01:00:00"));
  EXPECT_TRUE(
      NoteRefused(At("01:00:00"), absl::UnavailableError("no answer"), At("09:00:00"), &record_));
  const Plan plan = Look(At("09:00:10"), "b");
  EXPECT_EQ(plan.failed, 1);
  EXPECT_EQ(plan.missed, 7);
  EXPECT_EQ(plan.occurrence, At("09:00:00"));
}

TEST_F(PlanTest, AnErrorThatIsNoRefusalIsFollowedByATryWhenTheNextOccurrenceIsDue) {
  Refuse(At("01:59:30"), absl::UnavailableError("no answer"));
  EXPECT_EQ(Look(At("02:00:00")).occurrence, At("01:00:00"));
  EXPECT_TRUE(NoteSubmitted(At("01:00:00"), 7, At("02:00:00"), &record_));
  EXPECT_THAT(Submit(At("02:00:00")), ElementsAre("02:00"));
  EXPECT_EQ(record_.failed(), 0);
}

TEST_F(PlanTest, OnceIsSubmittedLateAndThenEnded) {
  Once(At("01:30:00"));
  EXPECT_EQ(Look(At("01:00:00")).look_again, At("01:30:00"));
  EXPECT_THAT(Submit(At("23:00:00")), ElementsAre("01:30"));
  EXPECT_EQ(base::FromProto(record_.ended()), At("23:00:00"));
  EXPECT_EQ(Look(At("23:00:00")).look_again, At("23:00:00") + kKeepEnded);
}

TEST_F(PlanTest, OnceIsTriedForADay) {
  Once(At("01:30:00"));
  Refuse(At("01:30:00"));
  Refuse(At("23:30:00"));
  EXPECT_FALSE(record_.has_ended());
  Refuse(At("01:29:00") + absl::Hours(24));
  const Plan plan = Look(At("01:30:00") + absl::Hours(24));
  EXPECT_EQ(plan.failed, 1);
  EXPECT_EQ(plan.occurrence, std::nullopt);
  EXPECT_TRUE(record_.has_ended());
  EXPECT_EQ(record_.problem(), "full");
}

TEST_F(NonePlanTest, OnceThatIsMissedHasEnded) {
  Once(At("01:30:00"));
  const Plan plan = Look(At("01:32:00"));
  EXPECT_EQ(plan.missed, 1);
  EXPECT_TRUE(record_.has_ended());
  EXPECT_THAT(record_.problem(), HasSubstr("missed 1 occurrence, the last one that of "));
}

TEST_F(AllPlanTest, WhatOccursDuringAPauseIsNotMadeUpFor) {
  Pause(&record_);
  EXPECT_THAT(Submit(At("03:30:00")), IsEmpty());
  EXPECT_EQ(Look(At("03:30:00")).look_again, At("04:00:00"));
  EXPECT_EQ(NextOf(record_, Calendar::Of(record_.spec()).value(), At("03:30:00")), std::nullopt);
  Resume(At("03:30:00"), &record_);
  EXPECT_THAT(Submit(At("03:30:00")), IsEmpty());
  EXPECT_THAT(Submit(At("04:00:00")), ElementsAre("04:00"));
  EXPECT_EQ(record_.missed(), 0);
}

TEST_F(PlanTest, APauseEndsTheTriesOfARefusedOccurrenceButNotOfAnUnknownOne) {
  Refuse(At("01:00:00"));
  Pause(&record_);
  Resume(At("01:10:00"), &record_);
  EXPECT_THAT(Submit(At("01:10:00")), IsEmpty());
  EXPECT_EQ(Look(At("02:00:00"), "a").occurrence, At("02:00:00"));  // and "a" dies
  Pause(&record_);
  EXPECT_THAT(Submit(At("02:10:00")), IsEmpty());
  Resume(At("02:20:00"), &record_);
  EXPECT_THAT(Submit(At("02:20:00")), ElementsAre("02:00"));
}

TEST_F(AllPlanTest, WhatOccursDuringAPauseIsNotMadeUpForBehindATryThatADeathCutOff) {
  EXPECT_EQ(Look(At("01:00:00")).occurrence, At("01:00:00"));  // and it dies
  Pause(&record_);
  Resume(At("05:30:00"), &record_);
  EXPECT_THAT(Submit(At("05:30:00")), ElementsAre("01:00"));
  EXPECT_THAT(Submit(At("06:00:00")), ElementsAre("06:00"));
}

TEST_F(PlanTest, ADiskThatIsFullMayHaveMadeTheBatchSoItsOccurrenceIsTriedOnceMore) {
  Refuse(At("01:59:59"), absl::ResourceExhaustedError("no space left"));
  EXPECT_EQ(Look(At("02:00:00")).occurrence, At("01:00:00"));
}

TEST_F(PlanTest, OnceWhoseTimePassesDuringAPauseHasEnded) {
  Once(At("01:30:00"));
  Pause(&record_);
  Resume(At("01:10:00"), &record_);
  EXPECT_FALSE(record_.has_ended());
  Pause(&record_);
  EXPECT_THAT(Submit(At("01:40:00")), IsEmpty());
  Resume(At("01:45:00"), &record_);
  EXPECT_TRUE(record_.has_ended());
  EXPECT_EQ(record_.problem(), "its time passed while it was paused");
}

TEST_F(AllPlanTest, AnUpdateGoesOnWithTheNextOccurrenceOfTheNewSpec) {
  v1::ScheduleSpec spec = record_.spec();
  spec.set_cron("30 * * * *");
  spec.set_job("other");
  ASSERT_TRUE(Update(spec, At("03:10:00"), &record_).ok());
  EXPECT_EQ(record_.updates(), 1);
  EXPECT_EQ(record_.spec().job(), "other");
  EXPECT_THAT(Submit(At("03:29:59")), IsEmpty()) << "01:00 to 03:00 were still to be made up for";
  EXPECT_THAT(Submit(At("04:40:00")), ElementsAre("03:30", "04:30"));
}

TEST_F(PlanTest, AnUpdateRepeatsNothingThoughTheClockWasSetBack) {
  EXPECT_THAT(Submit(At("05:00:00")), ElementsAre("05:00"));
  v1::ScheduleSpec spec = record_.spec();
  spec.set_cron("*/30 * * * *");
  ASSERT_TRUE(Update(spec, At("03:10:00"), &record_).ok());
  EXPECT_THAT(Submit(At("05:00:00")), IsEmpty());
  EXPECT_THAT(Submit(At("05:30:00")), ElementsAre("05:30"));
  spec.clear_time_zone();
  *spec.mutable_at() = base::ToProto(At("05:30:00"));
  EXPECT_THAT(std::string(Update(spec, At("04:00:00"), &record_).message()), HasSubstr("is past"));
}

TEST_F(PlanTest, AnUpdateByAClockThatIsBehindRepeatsNoOccurrenceThatWasTried) {
  ASSERT_TRUE(Look(At("01:00:00")).occurrence.has_value());
  ASSERT_TRUE(NoteRefused(At("01:00:00"), TooMuchWaits(), At("01:00:02"), &record_));
  v1::ScheduleSpec spec = record_.spec();
  spec.set_job("other");
  ASSERT_TRUE(Update(spec, At("00:59:00"), &record_).ok());
  EXPECT_EQ(base::FromProto(record_.decided()), At("01:00:00"));
  EXPECT_FALSE(Look(At("01:00:00")).occurrence.has_value());
}

TEST_F(PlanTest, AnUpdateWaitsForATryThatMayHaveMadeItsBatch) {
  ASSERT_TRUE(Look(At("01:00:00")).occurrence.has_value());
  v1::ScheduleSpec spec = record_.spec();
  spec.set_job("other");
  const v1::ScheduleRecord before = record_;
  EXPECT_TRUE(absl::IsUnavailable(Update(spec, At("01:00:01"), &record_)));
  EXPECT_EQ(record_.SerializeAsString(), before.SerializeAsString());
  ASSERT_TRUE(NoteRefused(At("01:00:00"), TooMuchWaits(), At("01:00:02"), &record_));
  ASSERT_TRUE(Update(spec, At("01:00:03"), &record_).ok());
  EXPECT_FALSE(record_.has_attempt());
  EXPECT_EQ(record_.problem(), "");
  EXPECT_THAT(Submit(At("02:00:00")), ElementsAre("02:00"));
}

TEST_F(PlanTest, OneThatHasEndedIsNotUpdated) {
  Once(At("01:00:00"));
  EXPECT_THAT(Submit(At("01:00:00")), ElementsAre("01:00"));
  v1::ScheduleSpec spec = record_.spec();
  *spec.mutable_at() = base::ToProto(At("02:00:00"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Update(spec, At("01:30:00"), &record_)));
}

TEST_F(PlanTest, ARequestIdNamesTheScheduleAndTheOccurrence) {
  EXPECT_EQ(RequestIdOf(record_, At("01:00:00")), "schedule:3132333435363738:2026-12-01T01:00:00Z");
  EXPECT_EQ(RequestIdOf(record_, At("01:00:00") + absl::Nanoseconds(1)),
            "schedule:3132333435363738:2026-12-01T01:00:00.000000001Z");
  EXPECT_EQ(RequestIdOf(record_, "r1"), "schedule:3132333435363738:run:r1");
}

}  // namespace
}  // namespace muster::schedule
