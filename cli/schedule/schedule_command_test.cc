// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/rpc/channel.h"
#include "muster/schedule/limits.h"
#include "muster/schedule/schedule_store.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/cli/client_fixture.h"
#include "tests/fakes/job/job_text.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// The clock of the services and of the command begins at 2011-11-11T00:00:00Z, a Friday.
class ScheduleCommandTest : public ClientTest {
 protected:
  ScheduleCommandTest() {
    EXPECT_TRUE(registry_.Apply(job::JobText("shop"), std::nullopt).ok());
    std::ofstream(input_) << "amount\n1\n";
  }

  Done RunSchedule(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "schedule");
    return RunOnServer(std::move(arguments));
  }
  Done Create(const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"create", name, "--job", "shop", "--input", input_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunSchedule(std::move(arguments));
  }
  Done Submit(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"batch", "submit", "shop", "--input", input_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunOnServer(std::move(arguments));
  }
  nlohmann::json Get(const std::string& name) {
    return nlohmann::json::parse(RunSchedule({"get", name, "-o", "json"}).out);
  }

  const std::string input_ = dir_ / "input.csv";
};

TEST_F(ScheduleCommandTest, MakesACronScheduleAndShowsIt) {
  const Done done = Create("nightly", {"--cron", "0 3 * * 1-5", "--time-zone", "Europe/Berlin",
                                       "--catch-up", "all", "--label", "team=billing", "--sla",
                                       "10m", "--tenant", "acme", "--handler-version", "7"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_EQ(done.out, "schedule nightly is made; next at 2011-11-11T02:00:00.000Z\n");
  const nlohmann::json json = Get("nightly");
  EXPECT_EQ(json["cron"], "0 3 * * 1-5");
  EXPECT_EQ(json["time_zone"], "Europe/Berlin");
  EXPECT_EQ(json["catch_up"], "all");
  EXPECT_EQ(json["labels"]["team"], "billing");
  EXPECT_EQ(json["sla_seconds"], 600);
  EXPECT_EQ(json["tenant"], "acme");
  EXPECT_EQ(json["handler_version"], "7");
  EXPECT_EQ(json["content_bytes"], 9);
  EXPECT_EQ(json["next"], "2011-11-11T02:00:00.000Z");
  EXPECT_TRUE(json["last"].is_null());
  EXPECT_TRUE(json["last_batch"].is_null());
  EXPECT_THAT(RunSchedule({"list"}).out,
              AllOf(ContainsRegex("SCHEDULE +JOB +WHEN +STATE +NEXT +LAST +BATCH +PROBLEM\n"),
                    ContainsRegex("nightly +shop +0 3 \\* \\* 1-5 Europe/Berlin +active +"
                                  "2011-11-11T02:00:00.000Z +- +- +-\n")));
  EXPECT_THAT(RunSchedule({"get", "nightly"}).out, HasSubstr("state: active\n"));
  EXPECT_THAT(RunSchedule({"list", "-o", "csv"}).out, HasSubstr("nightly,shop,0 3 * * 1-5"));
}

TEST_F(ScheduleCommandTest, TheSameAgainIsFineAndAnotherIsNot) {
  EXPECT_EQ(Create("nightly", {"--cron", "@daily"}).code, kOk);
  EXPECT_EQ(Create("nightly", {"--cron", "@daily"}).code, kOk);
  const Done done = Create("nightly", {"--cron", "@weekly"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.err, HasSubstr("there is another schedule 'nightly': delete it first"));
}

TEST_F(ScheduleCommandTest, NamesTheFileThatTheJobCannotRead) {
  std::ofstream(input_) << "price\n1\n";
  for (const Done& done : {Create("nightly", {"--cron", "@daily"}), Submit({"--in", "1h"})}) {
    EXPECT_EQ(done.code, kError);
    EXPECT_THAT(done.err, HasSubstr(input_ + ": the input has no column 'amount'"));
  }
}

TEST_F(ScheduleCommandTest, UpdatesWhatIsNamedAndKeepsTheRest) {
  EXPECT_EQ(Create("nightly", {"--cron", "0 3 * * *", "--time-zone", "Europe/Berlin", "--sla",
                               "10m", "--label", "team=billing", "--catch-up", "all"})
                .code,
            kOk);
  const std::string id = Get("nightly")["id"];
  EXPECT_EQ(Get("nightly")["revision"], 1);
  EXPECT_EQ(RunSchedule({"update", "nightly", "--cron", "0 4 * * *", "--label", "team=tills"}).out,
            "schedule nightly is changed; next at 2011-11-11T03:00:00.000Z\n");
  const nlohmann::json json = Get("nightly");
  EXPECT_EQ(json["id"], id);
  EXPECT_EQ(json["revision"], 2);
  EXPECT_EQ(json["cron"], "0 4 * * *");
  EXPECT_EQ(json["time_zone"], "Europe/Berlin");
  EXPECT_EQ(json["catch_up"], "all");
  EXPECT_EQ(json["sla_seconds"], 600);
  EXPECT_EQ(json["labels"]["team"], "tills");
  EXPECT_EQ(json["content_bytes"], 9);
  EXPECT_EQ(RunSchedule({"update", "nightly", "--in", "2h", "--revision", "2"}).out,
            "schedule nightly is changed; next at 2011-11-11T02:00:00.000Z\n");
  const Done late = RunSchedule({"update", "nightly", "--cron", "@daily", "--revision", "2"});
  EXPECT_EQ(late.code, kError);
  EXPECT_THAT(late.err, HasSubstr("schedule 'nightly' is at revision 3, not 2"));
  EXPECT_THAT(RunSchedule({"update", "nightly", "--cron", "0 24 * * *"}).err,
              HasSubstr(" --cron: "));
  EXPECT_THAT(RunSchedule({"update", "nightly"}).err, HasSubstr("no change is named"));
  EXPECT_THAT(RunSchedule({"update", "nightly", "--job", "other"}).err, HasSubstr("other"));
  EXPECT_THAT(RunSchedule({"update", "none", "--cron", "@daily"}).err,
              HasSubstr("muster schedule list"));
  EXPECT_EQ(
      RunSchedule({"update", "nightly", "--cron", "@daily", "--at", "2030-01-01T00:00Z"}).code,
      kUsage);
}

TEST_F(ScheduleCommandTest, PausesResumesRunsAndDeletes) {
  EXPECT_EQ(Create("nightly", {"--cron", "@daily"}).code, kOk);
  EXPECT_EQ(RunSchedule({"pause", "nightly"}).out, "schedule nightly; it is paused\n");
  EXPECT_EQ(Get("nightly")["state"], "paused");
  EXPECT_TRUE(Get("nightly")["next"].is_null());
  EXPECT_EQ(RunSchedule({"resume", "nightly"}).out,
            "schedule nightly goes on; next at 2011-11-12T00:00:00.000Z\n");
  EXPECT_EQ(RunSchedule({"run", "nightly", "--run-id", "one"}).out,
            "batch 41 is submitted\nwatch it: muster batch watch 41\n");
  EXPECT_THAT(submitted_by_schedules_[0].request_id(),
              MatchesRegex("schedule:[0-9a-f]{16}:run:one"));
  EXPECT_EQ(submitted_by_schedules_[0].labels().at("schedule"), "nightly");
  EXPECT_EQ(RunSchedule({"run", "nightly"}).code, kOk);
  // However long the name of this host is.
  EXPECT_THAT(submitted_by_schedules_[1].request_id(),
              MatchesRegex("schedule:[0-9a-f]{16}:run:run-[0-9a-f]{16}"));
  EXPECT_EQ(Get("nightly")["last_batch"], 42);
  EXPECT_EQ(RunSchedule({"delete", "nightly"}).out,
            "schedule nightly is deleted; its batches stay\n");
  const Done gone = RunSchedule({"get", "nightly"});
  EXPECT_EQ(gone.code, kError);
  EXPECT_THAT(gone.err,
              AllOf(HasSubstr("no schedule 'nightly'"), HasSubstr("muster schedule list")));
}

TEST_F(ScheduleCommandTest, ASubmitForLaterIsAScheduleOfItsOwn) {
  const Done done = Submit({"--at", "2011-11-11T03:00[Europe/Berlin]"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_THAT(done.out,
              MatchesRegex("a batch is submitted at 2011-11-11T02:00:00.000Z by schedule "
                           "once-[0-9a-f]{16}\nlook at it: muster schedule get once-.*\n"));
  EXPECT_EQ(Submit({"--at", "2011-11-11T02:00:00Z"}).out, done.out);  // the same, again
  EXPECT_EQ(Submit({"--in", "90m"}).code, kOk);
  const auto all = nlohmann::json::parse(RunSchedule({"list", "-o", "json"}).out);
  ASSERT_EQ(all.size(), 2u);
  std::set<std::string> times = {all[0]["at"], all[1]["at"]};
  EXPECT_EQ(times, (std::set<std::string>{"2011-11-11T01:30:00.000Z", "2011-11-11T02:00:00.000Z"}));
}

TEST_F(ScheduleCommandTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(Create("a", {"--cron", "@daily", "--at", "2011-11-12T00:00:00Z"}).code, kUsage);
  EXPECT_EQ(Create("a", {"--at", "2011-11-12T00:00:00Z", "--in", "1h"}).code, kUsage);
  EXPECT_EQ(Create("a", {"--in", "1h", "--time-zone", "UTC"}).code, kUsage);
  EXPECT_EQ(Create("a", {"--cron", "@daily", "--catch-up", "some"}).code, kUsage);
  EXPECT_EQ(Submit({"--at", "tomorrow"}).code, kUsage);
  EXPECT_EQ(Submit({"--in", "1h", "--wait"}).code, kUsage);
  EXPECT_EQ(Submit({"--in", "1h", "--request-id", "x"}).code, kUsage);
  const Done never = Create("a", {});
  EXPECT_EQ(never.code, kUsage);
  EXPECT_THAT(never.err, HasSubstr("one of --cron, --at and --in is required"));
  EXPECT_THAT(Create("a", {"--cron", "0 24 * * *"}).err,
              HasSubstr(" --cron: the hour '24' is not *"));
  EXPECT_THAT(Create("a", {"--cron", "@daily", "--time-zone", "Atlantis"}).err,
              HasSubstr("no time zone 'Atlantis'"));
  EXPECT_THAT(Create("A", {"--cron", "@daily"}).err, HasSubstr(" NAME: must be 1 to 48"));
  EXPECT_THAT(Create("a", {"--at", "2011-11-10T00:00[Europe/Berlin]"}).err,
              HasSubstr(" --at: is past: 2011-11-09T23:00:00Z"));
  EXPECT_THAT(Create("a", {"--in", "0s"}).err, HasSubstr(" --in: is past: 2011-11-11T00:00:00Z"));
  EXPECT_THAT(
      RunSchedule({"create", "a", "--job", "other", "--input", input_, "--cron", "@daily"}).err,
      HasSubstr("no job 'other'"));
  EXPECT_THAT(RunSchedule({"run", "a", "--run-id", "a b"}).err, HasSubstr("run_id: must be"));
  EXPECT_THAT(Run({"schedule", "list"}).err, HasSubstr("--server"));
  std::ofstream(input_) << std::string(schedule::kMaxContentBytes + 1, '1');
  EXPECT_THAT(Create("a", {"--cron", "@daily"}).err, HasSubstr("a schedule takes at most 3MiB"));
  std::ofstream(input_, std::ios::trunc).flush();
  EXPECT_THAT(Create("a", {"--cron", "@daily"}).err, HasSubstr(input_ + ": must have 1 to"));
  EXPECT_THAT(schedules_.List().value(), ::testing::IsEmpty());
}

TEST_F(ScheduleCommandTest, ARepeatedCallAfterItsTimeIsAnsweredAllTheSame) {
  EXPECT_EQ(Create("soon", {"--at", "2011-11-11T00:00:05Z"}).code, kOk);
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(Create("soon", {"--at", "2011-11-11T00:00:05Z"}).code, kOk);
  EXPECT_EQ(Create("late", {"--at", "2011-11-11T00:00:05Z"}).code, kError);
}

TEST_F(ScheduleCommandTest, ListsPageByPage) {
  v1::ScheduleSpec spec;
  spec.set_job("shop");
  spec.set_cron("@daily");
  for (const char* name : {"a", "b", "c"}) {
    spec.set_name(name);
    ASSERT_TRUE(schedules_.Create(spec, "1").ok());
  }
  std::vector<std::string> names;
  v1::ListSchedulesRequest request;
  request.set_page_size(2);
  const auto stub = v1::ScheduleService::NewStub(rpc::OpenChannel(server()).value());
  do {
    rpc::CallContext context(absl::Minutes(1));
    v1::ListSchedulesResponse response;
    ASSERT_TRUE(stub->ListSchedules(&context, request, &response).ok());
    EXPECT_LE(response.schedules_size(), 2);
    for (const auto& schedule : response.schedules()) names.push_back(schedule.spec().name());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(names, ::testing::ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace muster::cli
