#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/client_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backends.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/nats/server_version.h"
#include "muster/nats/testing/nats_server.h"
#include "muster/scaling_remote/testing/made_up_agent.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A processor and a controller, at one address that is ready, with handler version 7 of job "shop".
class DoctorTest : public ClientTest {
 protected:
  DoctorTest() {
    controller_->SetReady(true);
    initiator_->SetReady(true);
    v1::Instance processor = mesh_.controllers[0];
    processor.mutable_info()->set_role(v1::ROLE_PROCESSOR);
    processor.mutable_info()->set_instance("p-1");
    v1::HandlerVersion* const handler = processor.mutable_info()->add_handlers();
    handler->set_job("shop");
    handler->set_version("7");
    mesh_.others = {processor};
    for (v1::Instance* instance : {&mesh_.others[0], &mesh_.controllers[0]}) {
      instance->mutable_info()->set_version(Version());
      *instance->mutable_last_heartbeat() = proto_time::ToProto(clock_.Now());
      *instance->mutable_heartbeat()->mutable_sent() = proto_time::ToProto(clock_.Now());
    }
  }

  // A batch that is worked on.
  void PutBatch(uint64_t number, const std::string& job, const std::string& handler_version) {
    v1::BatchStatus& batch = batches_.batches[number];
    batch.set_batch(number);
    batch.set_job(job);
    batch.set_state(v1::BATCH_STATE_SEALED);
    batch.set_handler_version(handler_version);
  }

  std::string Version() {
    const std::string line = Run({"version"}).out;  // "muster X\n"
    return line.substr(7, line.size() - 8);
  }
};

TEST_F(DoctorTest, FindsNothingWrongWithASoundMesh) {
  const Done done = RunThere({"doctor"});
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

TEST_F(DoctorTest, NamesWhoIsNotReadyNotReachableOrNotThere) {
  controller_->SetReady(false);
  EXPECT_THAT(RunThere({"doctor"}).out, HasSubstr("answers that it is not ready; its log says"));
  controller_.reset();
  mesh_.controllers.clear();
  const Done done = RunThere({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("wrong: processor p-1: localhost:"),
                              HasSubstr("wrong: controller: the initiator has heard of none")));
}

TEST_F(DoctorTest, WarnsOfOtherVersionsAndClocks) {
  mesh_.others[0].mutable_info()->set_version("0.0.1");
  *mesh_.others[0].mutable_heartbeat()->mutable_sent() =
      proto_time::ToProto(clock_.Now() + absl::Seconds(2));
  clock_.Advance(absl::Seconds(60));
  const Done done = RunThere({"doctor"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("warning: processor p-1: has version 0.0.1, not "),
                    HasSubstr("its clock is 2s ahead of the initiator's"),
                    HasSubstr("warning: initiator: its clock differs from the one here")));
}

TEST_F(DoctorTest, NamesBatchesThatWait) {
  PutBatch(7, "shop", "6");
  v1::BatchStatus& batch = batches_.batches[7];
  batch.set_problem("no controller answers");
  batches_.batches[8] = batch;
  batches_.batches[8].set_batch(8);
  batches_.batches[8].set_state(v1::BATCH_STATE_COMPLETE);
  const Done done = RunThere({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("wrong: batch 7: waits: no controller answers; it goes on"),
                    HasSubstr("wrong: batch 7: is bound to version 6"), Not(HasSubstr("batch 8"))));
}

TEST_F(DoctorTest, SaysThatABatchWaitsForWhichNobodyIsThere) {
  PutBatch(5, "bakery", "");
  PutBatch(6, "bakery", "6");
  const Done done = RunThere({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("wrong: batch 5: waits: no processor has the handler of "
                                        "job bakery; start a processor with it\n"),
                              HasSubstr("wrong: batch 6: waits: no processor has version 6 of the "
                                        "handler of job bakery; start")));
}

TEST_F(DoctorTest, HasNothingAgainstABatchThatIsBoundToNoVersionAndHasProcessors) {
  PutBatch(7, "shop", "");
  const Done done = RunThere({"doctor"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out, HasSubstr("ok: batches: none waits with a problem\n"));
}

TEST_F(DoctorTest, NamesJobsWhoseHandlerNobodyHas) {
  for (const char* job : {"shop", "bakery"}) {
    const std::string path = dir_ / absl::StrCat(job, ".yaml");
    std::ofstream(path) << job << ": 1";
    ASSERT_EQ(RunThere({"job", "apply", path}).code, kOk);
  }
  const Done done = RunThere({"doctor"});
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
    EXPECT_EQ(RunThere({"job", "apply", path}).code, kOk);
  }

  // p-2 in trouble; without a handler it does not get as far as to listen.
  void Trouble(const std::string& why, bool has_handler) {
    v1::JobLoad* const load = mesh_.others[1].mutable_heartbeat()->add_jobs();
    load->set_job("shop");
    load->set_trouble(why);
    if (!has_handler) mesh_.others[1].mutable_info()->clear_handlers();
  }
};

TEST_F(TroubleDoctorTest, FindsItWrongThatNobodyIsAtAHandlersAddress) {
  Trouble("the handler at bills:7800 cannot be connected to", true);
  const Done done = RunThere({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("wrong: job shop: processor p-2 cannot work for it: the "
                                        "handler at bills:7800 cannot be connected to; once"),
                              Not(HasSubstr("ok: job shop"))));
}

TEST_F(TroubleDoctorTest, FindsItWrongThatOneOfTwoProcessorsLacksTheProgram) {
  Trouble("NOT_FOUND: no program 'bill' in PATH", false);
  const Done done = RunThere({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("processor p-2 cannot work for it: NOT_FOUND: no program"),
                              Not(HasSubstr("processor p-1 cannot work"))));
}

TEST_F(TroubleDoctorTest, FindsItWrongThatTheScriptIsMissingEverywhere) {
  Trouble("NOT_FOUND: no script /bill.py for python3", false);
  mesh_.others.erase(mesh_.others.begin());
  const Done done = RunThere({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("cannot work for it: NOT_FOUND: no script /bill.py"),
                              Not(HasSubstr("no processor has its handler"))));
}

TEST_F(TroubleDoctorTest, TellsOfTwoVersionsBesideTheTrouble) {
  Trouble("it fails", true);
  mesh_.others[1].mutable_info()->mutable_handlers(0)->set_version("8");
  EXPECT_THAT(RunThere({"doctor"}).out,
              AllOf(HasSubstr("wrong: job shop: processor p-2 cannot work for it: it fails"),
                    HasSubstr("warning: job shop: processors have handler versions 7, 8")));
}

TEST_F(TroubleDoctorTest, IsSilentOfWhoLeaves) {
  Trouble("it fails", true);
  mesh_.others[1].set_leaving(true);
  EXPECT_THAT(RunThere({"doctor"}).out, AllOf(HasSubstr("ok: job shop: processors have handler"),
                                              Not(HasSubstr("it fails"))));
}

TEST_F(DoctorTest, FindsItWrongThatTwoControllersCount) {
  v1::Instance other = mesh_.controllers[0];
  other.mutable_info()->set_instance("c-2");
  mesh_.controllers.push_back(other);
  const Done done = RunThere({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, AllOf(HasSubstr("wrong: controller: 2 are there: "),
                              HasSubstr(", c-2; stop all but")));
  mesh_.controllers[1].set_leaving(true);
  EXPECT_EQ(RunThere({"doctor"}).code, kOk) << "one is replaced by another";
}

// Its health is not asked for here: it serves nothing but ScalingService.
class ScalingDoctorTest : public DoctorTest {
 protected:
  ScalingDoctorTest() {
    v1::Instance agent = mesh_.controllers[0];
    agent.mutable_info()->set_role(v1::ROLE_SCALING_AGENT);
    agent.mutable_info()->set_instance("s-1");
    agent.mutable_info()->set_address(agent_.address());
    mesh_.others.push_back(agent);
    agent_.Tell([](AgentState& state) {
      state.agent.set_mode(v1::SCALING_MODE_ACT);
      state.agent.set_actuator("process");
      state.agent.set_rules_revision(3);
      state.targets.emplace_back().set_target("billing");
    });
  }

  using AgentState = scaling_remote::testing::AgentState;
  scaling_remote::testing::MadeUpAgent agent_;
};

TEST_F(ScalingDoctorTest, SaysThatAnAgentLeads) {
  EXPECT_THAT(RunThere({"doctor"}).out,
              AllOf(HasSubstr("ok: scaling agent s-1: leads; mode act, actuator process, rules "
                              "revision 3\n"),
                    Not(HasSubstr("billing"))));
}

TEST_F(ScalingDoctorTest, WarnsOfRefusedRulesAndOfTrouble) {
  agent_.Tell([](AgentState& state) {
    state.agent.set_rules_refusal("rules.yaml:3:1: no such key");
    state.targets[0].set_trouble("the actuator refuses");
  });
  EXPECT_THAT(RunThere({"doctor"}).out,
              AllOf(HasSubstr("warning: scaling agent s-1: refused a change of its rules: "
                              "rules.yaml:3:1: no such key; mend the file"),
                    HasSubstr("warning: scaling target billing: the actuator refuses; `muster "
                              "scale explain --target billing`")));
}

TEST_F(ScalingDoctorTest, FindsItWrongThatNobodyLeads) {
  agent_.StepDown("");
  const Done done = RunThere({"doctor"});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, HasSubstr("wrong: scaling: no scaling agent that is heard leads"));
}

// The agent's target "billing" works on job "shop", and has let all processors go.
class AtZeroDoctorTest : public ScalingDoctorTest {
 protected:
  AtZeroDoctorTest() {
    mesh_.others.erase(mesh_.others.begin());  // the processor
    agent_.Tell([](AgentState& state) { state.targets[0].add_queues("shop-in"); });
    const std::string path = dir_ / "shop.yaml";
    std::ofstream(path) << "shop: 1";
    EXPECT_EQ(RunThere({"job", "apply", path}).code, kOk);
  }
};

TEST_F(AtZeroDoctorTest, FindsAnIdleMeshWithoutProcessorsSound) {
  EXPECT_THAT(RunThere({"doctor"}).out,
              AllOf(HasSubstr("ok: processor: none is there; the scaling agent starts them\n"),
                    HasSubstr("ok: job shop: no processor has its handler now; scaling target "
                              "billing starts them when there is work\n"),
                    Not(HasSubstr("wrong: processor")), Not(HasSubstr("wrong: job"))));
}

TEST_F(AtZeroDoctorTest, SaysWhoIsStartedForABatch) {
  PutBatch(7, "shop", "");
  agent_.Tell([](AgentState& state) { state.targets[0].mutable_decision()->set_replicas(2); });
  EXPECT_THAT(RunThere({"doctor"}).out,
              HasSubstr("ok: batch 7: waits for scaling target billing, which starts 2\n"));
}

TEST_F(AtZeroDoctorTest, WarnsOfABatchForWhichNobodyIsStarted) {
  PutBatch(7, "shop", "");
  EXPECT_THAT(RunThere({"doctor"}).out,
              HasSubstr("warning: batch 7: waits, and scaling target billing starts nobody; "
                        "`muster scale explain --target billing` says why\n"));
}

TEST_F(AtZeroDoctorTest, WarnsOfReplicasThatDoNotHaveTheHandlerThatABatchNeeds) {
  PutBatch(7, "shop", "");
  agent_.Tell([](AgentState& state) {
    state.targets[0].mutable_decision()->set_replicas(2);
    state.targets[0].mutable_replicas()->set_ready(2);
  });
  EXPECT_THAT(RunThere({"doctor"}).out,
              HasSubstr("warning: batch 7: waits: no replica of scaling target billing has the "
                        "handler of job shop; if it stays so"));
}

TEST_F(AtZeroDoctorTest, ExpectsNobodyOfATargetWithOtherQueues) {
  PutBatch(7, "shop", "");
  agent_.Tell([](AgentState& state) { state.targets[0].set_queues(0, "bakery-in"); });
  EXPECT_THAT(RunThere({"doctor"}).out,
              AllOf(HasSubstr("wrong: batch 7: waits: no processor has the handler of job shop"),
                    HasSubstr("wrong: job shop: no processor has its handler; start")));
}

TEST_F(AtZeroDoctorTest, ExpectsNobodyOfAnAgentThatOnlyTellsWhatItWouldDo) {
  PutBatch(7, "shop", "");
  agent_.Tell([](AgentState& state) { state.agent.set_mode(v1::SCALING_MODE_OBSERVE); });
  EXPECT_THAT(RunThere({"doctor"}).out, AllOf(HasSubstr("wrong: batch 7: waits"),
                                              HasSubstr("wrong: processor: the initiator has")));
  agent_.Tell([](AgentState& state) {
    state.agent.set_mode(v1::SCALING_MODE_ACT);
    state.agent.set_actuator("dry-run");
  });
  EXPECT_THAT(RunThere({"doctor"}).out, HasSubstr("wrong: batch 7: waits"));
}

TEST_F(DoctorTest, SaysNothingOfScalingWhereThereIsNone) {
  EXPECT_THAT(RunThere({"doctor"}).out, Not(HasSubstr("scaling")));
}

TEST_F(DoctorTest, WarnsOfPoisonForPrograms) {
  const queue::QueueId id = {"local", "shop-in-0"};
  ASSERT_TRUE(queues_->CreateQueue(id, {}).ok());
  const auto put = queues_->Put(id, std::vector<queue::NewMessage>(1));
  ASSERT_TRUE(put.ok());
  const queue::DeadLetterRequest request{put->front().receipt, {"it hung", 3, "worker-1", {}}};
  ASSERT_TRUE(queues_->DeadLetter(id, {request})->front().ok());
  const Done done = RunThere({"doctor", "-o", "json"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out, HasSubstr("{\"health\":\"warning\",\"what\":\"queue local/shop-in-0\","
                                  "\"found\":\"1 message was given up\""));
}

TEST_F(DoctorTest, SaysThatNobodyHasLookedAtTheNatsServer) {
  const Done done = RunThere({"doctor"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out, AllOf(HasSubstr("unknown: streams: nobody has looked at the NATS server"),
                              HasSubstr("say --nats URL")));
}

// On each server that NatsServer::Programs names.
class NatsDoctorTest : public DoctorTest, public ::testing::WithParamInterface<std::string> {
 protected:
  std::string Examine(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"doctor", "--nats", server_.url()};
    words.insert(words.end(), more.begin(), more.end());
    const Done done = RunThere(words);
    code_ = done.code;
    return done.out;
  }

  void Make(const std::string& stream, const std::string& subject) {
    ASSERT_TRUE(
        jetstream_.EnsureStream({{"name", stream}, {"subjects", {subject}}, {"storage", "memory"}})
            .ok());
  }

  // As services do.
  void OpenStores() {
    backend::Backends backends;
    ASSERT_TRUE(backends.OpenSyncStore(server_.url()).ok());
    ASSERT_TRUE(backends.OpenBlobStore(server_.url()).ok());
    const auto queues = backends.OpenQueueStore(server_.url(), backend::Mode::kReadWrite,
                                                backend::Holders::kElsewhere, base::RealClock());
    ASSERT_TRUE(queues.ok()) << queues.status();
    ASSERT_TRUE((*queues)->CreateQueue({"local", "shop-in-0"}, {}).ok());
  }

  nats::testing::NatsServer server_{GetParam()};
  const std::unique_ptr<nats::Connection> connection_ =
      nats::Connection::Open(server_.url(), {}).value();
  nats::JetStream jetstream_{connection_.get(), absl::Seconds(30)};
  int code_ = kOk;
};

TEST_P(NatsDoctorTest, FindsWhatServicesMakeSound) {
  OpenStores();
  EXPECT_THAT(Examine(), AllOf(HasSubstr("answers, and runs JetStream"),
                               HasSubstr("ok: stream KV_muster: is set as it should be\n"),
                               HasSubstr("ok: stream OBJ_muster: is set as it should be\n"),
                               HasSubstr("ok: stream MUSTER-ATTEMPTS: is set as it should be\n"),
                               HasSubstr("ok: stream MUSTER_local_shop-in-0: is set"),
                               HasSubstr("warning: acknowledgements: survive the end of"),
                               Not(HasSubstr("unknown")), Not(HasSubstr("wrong"))));
  EXPECT_EQ(code_, kOk);
  // Notes of attempts are in the server's memory.
  ASSERT_TRUE(jetstream_.DeleteStream("MUSTER-ATTEMPTS").ok());
  EXPECT_THAT(Examine(), HasSubstr("ok: stream MUSTER-ATTEMPTS: is not there; it is made"));
}

TEST_P(NatsDoctorTest, FindsEachStreamThatIsSetOtherwise) {
  OpenStores();
  for (const auto& [stream, subject] : std::vector<std::pair<std::string, std::string>>{
           {"MUSTER_local_shop-in-0", "muster.queue.local.shop-in-0"},
           {"KV_muster", "$KV.muster.>"},
           {"OBJ_muster", "$O.muster.C.>"}}) {
    ASSERT_TRUE(jetstream_.DeleteStream(stream).ok());
    Make(stream, subject);
    const std::string found = Examine();
    EXPECT_EQ(code_, kError);
    const std::string wrong = absl::StrCat("wrong: stream ", stream, ": ");
    ASSERT_THAT(found, HasSubstr(wrong));
    const std::string line = found.substr(found.find(wrong));
    EXPECT_THAT(line.substr(0, line.find('\n')), HasSubstr("storage is \"memory\", not \"file\""));
  }
  nlohmann::json attempts = *jetstream_.StreamConfig("MUSTER-ATTEMPTS");
  attempts["max_bytes"] = 1024;
  ASSERT_TRUE(jetstream_.Call("STREAM.UPDATE.MUSTER-ATTEMPTS", attempts).ok());
  EXPECT_THAT(Examine(), HasSubstr("wrong: stream MUSTER-ATTEMPTS: max_bytes is 1024, not "));
}

TEST_P(NatsDoctorTest, LooksAtTheBucketThatTheServicesHave) {
  OpenStores();
  EXPECT_THAT(Examine({"--bucket", "other"}), HasSubstr("wrong: stream KV_other: "));
  EXPECT_EQ(code_, kError);
}

TEST_P(NatsDoctorTest, TellsTheServersVersionAndWhatItMeansForAcknowledgements) {
  OpenStores();
  const std::string address = nats::AddressesIn(server_.url()).front();
  const std::string version = nats::ServerVersion(address, absl::Seconds(30)).value();
  const std::string named = absl::StrCat("ok: NATS server ", address, ": has version ", version);
  const std::string process = Examine(), power = Examine({"--ack-survives", "power"});
  EXPECT_THAT(process, HasSubstr(named));
  if (nats::CanSyncAlways(version)) {
    EXPECT_EQ(code_, kOk);
    EXPECT_THAT(process, HasSubstr("a power cut only where it has sync_interval: always; set"));
    EXPECT_THAT(power, HasSubstr("ok: acknowledgements: are said to survive a power cut: they do"));
  } else {
    EXPECT_EQ(code_, kError);
    EXPECT_THAT(process, HasSubstr("a power cut never with this version; run 2.10 or later"));
    EXPECT_THAT(power, HasSubstr(absl::StrCat("wrong: acknowledgements: are said to survive a "
                                              "power cut, which server version ",
                                              version, " cannot promise; run nats-server 2.10")));
  }
}

INSTANTIATE_TEST_SUITE_P(Servers, NatsDoctorTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

TEST_F(DoctorTest, SaysThatANatsServerDoesNotAnswerOrStoresNothing) {
  using nats::testing::NatsServer;
  NatsServer nats(NatsServer::Programs().front(), "", NatsServer::Persistence::kNone);
  EXPECT_THAT(RunThere({"doctor", "--nats", nats.url()}).out,
              HasSubstr("runs no JetStream for us; start it with JetStream"));
  nats.Kill();
  const Done done = RunThere({"doctor", "--nats", nats.url()});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, HasSubstr(absl::StrCat("wrong: NATS server ", nats.url())));
}

}  // namespace
}  // namespace muster::cli
