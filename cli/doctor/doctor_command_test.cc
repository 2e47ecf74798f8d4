// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/item/held_keys.h"
#include "tests/fakes/cli/doctor_fixture.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(DoctorTest, FindsNothingWrongWithASoundMesh) {
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("ok: processor p-1: localhost:"),
                              HasSubstr("ok: queues: 0 of local, none has poison\n"),
                              HasSubstr("ok: batches: none waits with a problem\n"),
                              Not(HasSubstr("warning")), Not(HasSubstr("wrong"))));
}

TEST_F(DoctorTest, SaysThatTheInitiatorDoesNotAnswer) {
  const std::string address = server();
  initiator_.reset();
  const Done done = Run({"doctor", "--server", address});
  EXPECT_EQ(done.code, kUnreachable);
  EXPECT_THAT(done.out, HasSubstr(absl::StrCat("wrong: initiator: ", address)));
  EXPECT_EQ(done.err, "") << "it is said once";
}

// Without NATS the other instances send no heartbeats, although a direct call would find them
// healthy.
TEST_F(DoctorTest, NamesNatsFirstAndBlamesNobodyElseForIt) {
  PutBatch(7, "bakery", "6");
  mesh_.disconnected = true;
  controller_->SetReady(false);
  mesh_.others[0].set_leaving(true);
  clock_.Advance(absl::Seconds(60));
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out,
              AllOf(StartsWith(absl::StrCat("wrong: NATS: the initiator at ", server(),
                                            " gets no answer from it; start nats-server")),
                    HasSubstr("\nunknown: processor p-1: "), HasSubstr("\nunknown: controller "),
                    HasSubstr("\nunknown: batches: "), Not(HasSubstr("\nwrong")),
                    Not(HasSubstr("warning"))));
}

TEST_F(DoctorTest, FindsItWrongWithoutNatsTooThatSomebodyDoesNotAnswer) {
  mesh_.disconnected = true;
  controller_.reset();
  EXPECT_THAT(RunOnServer({"doctor"}).out, HasSubstr("\nwrong: processor p-1: localhost:"));
}

TEST_F(DoctorTest, WaitsAFewSecondsForEachAnswerUnlessItIsTold) {
  EXPECT_EQ(RunOnServer({"doctor"}).code, kOk);
  // gRPC rounds a deadline up by some hundredths of a second.
  EXPECT_LT(mesh_.patience(), absl::Seconds(4));
  EXPECT_EQ(RunOnServer({"doctor", "--timeout", "10m"}).code, kOk);
  EXPECT_GT(mesh_.patience(), absl::Minutes(1));
}

TEST_F(DoctorTest, FindsItWrongThatAnotherRoleIsTakenForTheInitiator) {
  FakeMesh same;
  rpc::ServerOptions options;
  options.addresses = {"localhost:0"};
  const auto other =
      rpc::Server::Start(options, {{v1::MeshService::service_full_name(), &same}}).value();
  const std::string& address = other->addresses().front();
  const Done done = Run({"doctor", "--server", address});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out,
              AllOf(HasSubstr(absl::StrCat("wrong: initiator: ", address,
                                           " does not offer what a muster-initiator does: ")),
                    Not(HasSubstr("ok: ")), Not(HasSubstr("jobs")),
                    Not(HasSubstr("see whether muster-initiator runs"))));
}

TEST_F(DoctorTest, NamesWhoIsNotReadyNotReachableOrNotThere) {
  controller_->SetReady(false);
  EXPECT_THAT(RunOnServer({"doctor"}).out, HasSubstr("answers that it is not ready; its log says"));
  controller_.reset();
  mesh_.controllers.clear();
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("wrong: processor p-1: localhost:"),
                              HasSubstr("wrong: controller: the initiator has heard of none")));
}

TEST_F(DoctorTest, SaysWhyAParkedProcessorTakesNothing) {
  v1::Standby* const standby = mesh_.others[0].mutable_heartbeat()->mutable_standby();
  standby->set_release("go");
  *standby->mutable_parked() = base::ToProto(clock_.Now());
  const Done parked = RunOnServer({"doctor"});
  EXPECT_EQ(parked.code, kOk);
  EXPECT_THAT(parked.out,
              HasSubstr("warning: processor p-1: is parked since 2011-11-11T00:00:00.000Z: "
                        "it was started to wait for release go; `muster release go` lets "
                        "it go"));
  *standby->mutable_left() = base::ToProto(clock_.Now());
  EXPECT_THAT(RunOnServer({"doctor"}).out, Not(HasSubstr("parked")));
}

TEST_F(DoctorTest, WarnsOfOtherVersionsAndClocks) {
  mesh_.others[0].mutable_info()->set_version("0.0.1");
  *mesh_.others[0].mutable_heartbeat()->mutable_sent() =
      base::ToProto(clock_.Now() + absl::Seconds(2) + absl::Nanoseconds(34'567));
  clock_.Advance(absl::Seconds(60));
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("warning: processor p-1: has version 0.0.1, not "),
                    HasSubstr("its clock is 2s ahead of the initiator's"),
                    HasSubstr("warning: initiator: its clock differs from the one here")));
}

TEST_F(DoctorTest, TakesASlowAnswerForNoDifferenceOfClocks) {
  // As while a controller hangs, of which the initiator asks what it lists.
  batches_.on_list = [this] { clock_.Advance(absl::Seconds(60)); };
  EXPECT_THAT(RunOnServer({"doctor"}).out, Not(HasSubstr("clock")));
}

TEST_F(DoctorTest, FindsItWrongThatTwoControllersCount) {
  v1::Instance other = mesh_.controllers[0];
  other.mutable_info()->set_instance("c-2");
  mesh_.controllers.push_back(other);
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("wrong: controller: 2 are there: "),
                              HasSubstr(", c-2; stop all but")));
  mesh_.controllers[1].set_leaving(true);
  EXPECT_EQ(RunOnServer({"doctor"}).code, kOk) << "one is replaced by another";
}

// It is ready all the same: it answers questions about the report.
TEST_F(DoctorTest, SaysWhyAControllerDoesNotCount) {
  v1::JobLoad* const load = mesh_.controllers[0].mutable_heartbeat()->add_jobs();
  load->set_job("retail");
  load->set_trouble("the report is locked");
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, HasSubstr("wrong: job retail: controller "));
  EXPECT_THAT(done.out, HasSubstr(" cannot count its results: the report is locked; once that"));
}

TEST_F(DoctorTest, SaysForWhomAControllerIsStandby) {
  v1::Instance other = mesh_.controllers[0];
  other.mutable_info()->set_instance("c-2");
  other.mutable_heartbeat()->mutable_controller_standby()->set_owner("controller-1");
  mesh_.controllers.push_back(other);
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out,
              HasSubstr("ok: controller c-2: is standby, and counts when controller-1 ends"));
}

TEST_F(DoctorTest, WarnsOfPoisonForPrograms) {
  const queue::QueueId id = {"local", "shop-in-0"};
  ASSERT_TRUE(queues_->CreateQueue(id, {}).ok());
  const auto put = queues_->Put(id, std::vector<queue::NewMessage>(1));
  ASSERT_TRUE(put.ok());
  const queue::DeadLetterRequest request{put->front().receipt, {"it hung", 3, "worker-1", {}}};
  ASSERT_TRUE(queues_->DeadLetter(id, {request})->front().ok());
  const Done done = RunOnServer({"doctor", "-o", "json"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out, HasSubstr("{\"health\":\"warning\",\"what\":\"queue local/shop-in-0\","
                                  "\"found\":\"1 message was given up, the oldest: it hung\""));
  item::HeldKeyStore keys(records_.get());
  ASSERT_TRUE(keys.Hold(id, {"alice", 7, 0, clock_.Now()}).ok());
  EXPECT_THAT(RunOnServer({"doctor"}).out,
              AllOf(HasSubstr("the oldest: it hung; 1 key is held behind it"),
                    HasSubstr("`muster queue held local/shop-in-0` says why")));
}

}  // namespace
}  // namespace muster::cli
