// What `muster doctor` finds of batches and jobs.
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
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("wrong: batch 7: waits: no controller answers; it goes on"),
                    HasSubstr("wrong: batch 7: is bound to version 6"), Not(HasSubstr("batch 8"))));
}

TEST_F(DoctorTest, SaysThatABatchWaitsForWhichNobodyIsThere) {
  PutBatch(5, "bakery", "");
  PutBatch(6, "bakery", "6");
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("wrong: batch 5: waits: no processor has the handler of "
                                        "job bakery; start a processor with it\n"),
                              HasSubstr("wrong: batch 6: waits: no processor has version 6 of the "
                                        "handler of job bakery; start")));
}

TEST_F(DoctorTest, HasNothingAgainstABatchThatIsBoundToNoVersionAndHasProcessors) {
  PutBatch(7, "shop", "");
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out, HasSubstr("ok: batches: none waits with a problem\n"));
}

TEST_F(DoctorTest, NamesJobsWhoseHandlerNobodyHas) {
  for (const char* job : {"shop", "bakery"}) {
    const std::string path = dir_ / absl::StrCat(job, ".yaml");
    std::ofstream(path) << job << ": 1";
    ASSERT_EQ(RunOnServer({"job", "apply", path}).code, kOk);
  }
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("ok: job shop: processors have handler version 7\n"),
                              HasSubstr("wrong: job bakery: no processor has its handler; start")));
}

// Job "shop", for which processor p-1 has a handler, and another processor.
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

  // p-2 in trouble; without a handler it does not get as far as to listen.
  void HealthIssues(const std::string& why, bool has_handler) {
    v1::JobLoad* const load = mesh_.others[1].mutable_heartbeat()->add_jobs();
    load->set_job("shop");
    load->set_trouble(why);
    if (!has_handler) mesh_.others[1].mutable_info()->clear_handlers();
  }
};

TEST_F(TroubleDoctorTest, FindsItWrongThatNobodyIsAtAHandlersAddress) {
  HealthIssues("the handler at bills:7800 cannot be connected to", true);
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("wrong: job shop: processor p-2 cannot work for it: the "
                                        "handler at bills:7800 cannot be connected to; once"),
                              Not(HasSubstr("ok: job shop"))));
}

TEST_F(TroubleDoctorTest, FindsItWrongThatOneOfTwoProcessorsLacksTheProgram) {
  HealthIssues("NOT_FOUND: no program 'bill' in PATH", false);
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("processor p-2 cannot work for it: NOT_FOUND: no program"),
                              Not(HasSubstr("processor p-1 cannot work"))));
}

TEST_F(TroubleDoctorTest, FindsItWrongThatTheScriptIsMissingEverywhere) {
  HealthIssues("NOT_FOUND: no script /bill.py for python3", false);
  mesh_.others.erase(mesh_.others.begin());
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("cannot work for it: NOT_FOUND: no script /bill.py"),
                              Not(HasSubstr("no processor has its handler"))));
}

TEST_F(TroubleDoctorTest, TellsOfTwoVersionsBesideTheTrouble) {
  HealthIssues("it fails", true);
  mesh_.others[1].mutable_info()->mutable_handlers(0)->set_version("8");
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              AllOf(HasSubstr("wrong: job shop: processor p-2 cannot work for it: it fails"),
                    HasSubstr("warning: job shop: processors have handler versions 7, 8")));
}

TEST_F(TroubleDoctorTest, IsSilentOfWhoLeaves) {
  HealthIssues("it fails", true);
  mesh_.others[1].set_leaving(true);
  EXPECT_THAT(RunOnServer({"doctor"}).out, AllOf(HasSubstr("ok: job shop: processors have handler"),
                                                 Not(HasSubstr("it fails"))));
}

}  // namespace
}  // namespace muster::cli
