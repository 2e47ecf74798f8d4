// SPDX-License-Identifier: Apache-2.0

// The findings of `muster doctor` about jobs, queues, batches and schedules.

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/cli/doctor_fixture.h"

namespace muster::cli {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(DoctorTest, NamesBatchesThatWait) {
  PutBatch(7, "shop", "6");
  v1::BatchStatus& batch = batches_.batches[7];
  batch.set_problem("no controller answers");
  batches_.batches[8] = batch;
  batches_.batches[8].set_batch(8);
  batches_.batches[8].set_state(v1::BATCH_STATE_COMPLETE);
  batches_.batches[8].clear_problem();
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("wrong: batch 7: waits: no controller answers; it goes on"),
                              Not(HasSubstr("batch 8"))));
}

TEST_F(DoctorTest, FindsItWrongThatTheReportDoesNotProveACompleteBatch) {
  PutBatch(7, "shop", "6");
  batches_.batches[7].set_state(v1::BATCH_STATE_COMPLETE);
  batches_.batches[7].set_problem("it is complete in the ledger, and the report has less");
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, HasSubstr("wrong: batch 7: it is complete in the ledger, and the report "
                                  "has less; until then, its report is not exact"));
}

TEST_F(DoctorTest, NamesABatchThatRetentionCannotRemoveAndSaysSinceWhen) {
  PutBatch(7, "shop", "6");
  v1::BatchStatus& batch = batches_.batches[7];
  batch.set_state(v1::BATCH_STATE_COMPLETE);
  batch.set_removal_problem("uploads/7: Permission denied");
  batch.mutable_removal_problem_since()->set_seconds(1323435000);
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out,
              HasSubstr("warning: batch 7: its retention cannot remove what is due, since "
                        "2011-12-09T12:50:00.000Z: uploads/7: Permission denied; mend that: "
                        "it is tried again within an hour; `muster batch delete 7`"));
  EXPECT_TRUE(batches_.listed().removal_problem());
  EXPECT_THAT(RunOnServer({"batch", "get", "7"}).out,
              HasSubstr("removal_problem: uploads/7: Permission denied\n"
                        "removal_problem_since: 2011-12-09T12:50:00.000Z\n"));
}

// Workers work the queue off: there is nothing to mend.
TEST_F(DoctorTest, FindsNothingWrongWithABatchThatAFullQueueHoldsBack) {
  PutBatch(7, "shop", "");
  batches_.batches[7].set_problem("its queue holds 500000 items, the bound");
  batches_.batches[7].set_held_back_items(12);
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out, HasSubstr("ok: batch 7: waits: its queue holds 500000 items, the bound\n"));
}

TEST_F(DoctorTest, HasNothingAgainstABatchThatIsBoundToNoVersionAndHasProcessors) {
  PutBatch(7, "shop", "");
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out, HasSubstr("ok: batches: none waits with a problem\n"));
}

// As the fake job service says of all jobs.
constexpr absl::Time kApplied = absl::FromUnixSeconds(1323435000);

TEST_F(DoctorTest, FindsItWrongThatAJobThatWasJustAppliedHasNoHandler) {
  clock_.StepWallClock(kApplied + absl::Minutes(59) - clock_.Now());
  const std::string path = dir_ / "bakery.yaml";
  std::ofstream(path) << "bakery: 1";
  ASSERT_EQ(RunOnServer({"job", "apply", path}).code, kOk);
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, HasSubstr("wrong: job bakery: no processor has its handler; start"));
}

// The README's own commands, one after the other, had the doctor find something wrong.
TEST_F(DoctorTest, AwaitsTheHeartbeatsAfterAJobIsApplied) {
  clock_.StepWallClock(kApplied + absl::Seconds(2) - clock_.Now());
  const std::string path = dir_ / "bakery.yaml";
  std::ofstream(path) << "bakery: 1";
  ASSERT_EQ(RunOnServer({"job", "apply", path}).code, kOk);
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              HasSubstr("unknown: job bakery: was applied just now; as yet, no processor has its "
                        "handler; ask again"));
  clock_.StepWallClock(absl::Seconds(5));
  EXPECT_THAT(RunOnServer({"doctor"}).out, HasSubstr("wrong: job bakery: no processor has"));
}

TEST_F(DoctorTest, NamesJobsWhoseHandlerNobodyHas) {
  for (const char* job : {"shop", "bakery"}) {
    const std::string path = dir_ / absl::StrCat(job, ".yaml");
    std::ofstream(path) << job << ": 1";
    ASSERT_EQ(RunOnServer({"job", "apply", path}).code, kOk);
  }
  PutBatch(7, "bakery", "");
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("ok: job shop: processors have handler version 7\n"),
                              HasSubstr("wrong: job bakery: no processor has its handler; start")));
}

// A tutorial's job whose handler was gone kept the doctor red for ever.
TEST_F(DoctorTest, OnlyWarnsOfAJobThatNoBatchWaitsForAndSaysHowToRemoveIt) {
  clock_.StepWallClock(kApplied + absl::Minutes(61) - clock_.Now());
  const std::string path = dir_ / "bakery.yaml";
  std::ofstream(path) << "bakery: 1";
  ASSERT_EQ(RunOnServer({"job", "apply", path}).code, kOk);
  PutBatch(7, "shop", "");
  PutBatch(8, "bakery", "");
  batches_.batches[8].set_state(v1::BATCH_STATE_COMPLETE);
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out,
              HasSubstr("warning: job bakery: no processor has its handler; no batch of it "
                        "waits; give a processor its handler, or remove the job: `muster "
                        "job delete bakery`\n"));
}

// Job "shop" with two processors; p-1 has a handler for it.
class TroubleDoctorTest : public DoctorTest {
 protected:
  TroubleDoctorTest() {
    v1::Instance other = mesh_.others[0];
    other.mutable_info()->set_instance("p-2");
    mesh_.others.push_back(other);
    const std::string path = dir_ / "shop.yaml";
    std::ofstream(path) << "shop: 1";
    EXPECT_EQ(RunOnServer({"job", "apply", path}).code, kOk);
  }

  // Gives p-2 a health trouble. Without a handler, p-2 never starts to listen.
  void HealthTroubles(const std::string& why, bool has_handler) {
    v1::JobLoad* const load = mesh_.others[1].mutable_heartbeat()->add_jobs();
    load->set_job("shop");
    load->set_trouble(why);
    if (!has_handler) mesh_.others[1].mutable_info()->clear_handlers();
  }
};

TEST_F(TroubleDoctorTest, FindsItWrongThatNobodyIsAtAHandlersAddress) {
  HealthTroubles("the handler at bills:7800 cannot be connected to", true);
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("wrong: job shop: processor p-2 cannot work for it: the "
                                        "handler at bills:7800 cannot be connected to; once"),
                              Not(HasSubstr("ok: job shop"))));
}

TEST_F(TroubleDoctorTest, FindsItWrongThatOneOfTwoProcessorsLacksTheProgram) {
  HealthTroubles("NOT_FOUND: no program 'bill' in PATH", false);
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("processor p-2 cannot work for it: NOT_FOUND: no program"),
                              Not(HasSubstr("processor p-1 cannot work"))));
}

TEST_F(TroubleDoctorTest, FindsItWrongThatTheScriptIsMissingEverywhere) {
  HealthTroubles("NOT_FOUND: no script /bill.py for python3", false);
  mesh_.others.erase(mesh_.others.begin());
  clock_.StepWallClock(kApplied + absl::Minutes(61) - clock_.Now());
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              HasSubstr("warning: job shop: processor p-2 cannot work"));
  PutBatch(7, "shop", "");
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("cannot work for it: NOT_FOUND: no script /bill.py"),
                              Not(HasSubstr("no processor has its handler"))));
}

TEST_F(TroubleDoctorTest, SaysOfAProgramThatFailsWithItemsThatItTakesThem) {
  HealthTroubles("its last items failed: the handler's program exited with status 3", true);
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              HasSubstr("wrong: job shop: processor p-2 works for it, but its last items failed: "
                        "the handler's program exited with status 3; this is over once"));
}

TEST_F(TroubleDoctorTest, TellsOfTwoVersionsBesideTheTrouble) {
  HealthTroubles("it fails", true);
  mesh_.others[1].mutable_info()->mutable_handlers(0)->set_version("8");
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              AllOf(HasSubstr("wrong: job shop: processor p-2 cannot work for it: it fails"),
                    HasSubstr("warning: job shop: processors have handler versions 7, 8")));
}

TEST_F(TroubleDoctorTest, IsSilentOfWhoLeaves) {
  HealthTroubles("it fails", true);
  mesh_.others[1].set_leaving(true);
  EXPECT_THAT(RunOnServer({"doctor"}).out, AllOf(HasSubstr("ok: job shop: processors have handler"),
                                                 Not(HasSubstr("it fails"))));
}

TEST_F(DoctorTest, SaysWhatIsWrongWithASchedule) {
  EXPECT_THAT(RunOnServer({"doctor"}).out, Not(HasSubstr("schedule")));
  v1::ScheduleSpec spec;
  spec.set_job("shop");
  spec.set_cron("@daily");
  for (const char* name : {"nightly", "weekly"}) {
    spec.set_name(name);
    ASSERT_TRUE(schedules_.Create(spec, "1").ok());
  }
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              HasSubstr("ok: schedules: nothing is wrong with 2 schedules\n"));
  const auto entries = schedules_.List().value();
  ASSERT_TRUE(schedules_
                  .Change(entries[0],
                          [](v1::ScheduleRecord* record) {
                            record->set_problem("no job 'shop'");
                            return true;
                          })
                  .ok());
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              AllOf(HasSubstr("warning: schedule nightly: no job 'shop'; `muster schedule get "
                              "nightly` says since when"),
                    HasSubstr("ok: schedules: nothing is wrong with 1 schedule\n")));
}

}  // namespace

}  // namespace muster::cli
