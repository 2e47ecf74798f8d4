// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/output/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "services/processor/worker_service.h"
#include "tests/fakes/cli/client_fixture.h"
#include "tests/fakes/listener/memory_store.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Settles every message at once.
class Subscriber final : public listener::Subscriber {
 public:
  void OnMessages(absl::Span<listener::Delivery> deliveries,
                  listener::DeliveryContext& context) override {
    for (listener::Delivery& delivery : deliveries) {
      if (!context.Begin(delivery).ok()) continue;
      listener::Settlement settlement;
      settlement.kind = listener::Settlement::Kind::kOk;
      context.Settle(delivery, std::move(settlement));
    }
  }
};

// A processor that serves its listeners in this process.
class TestProcessor final : public processor::JobListeners {
 public:
  TestProcessor(std::string name, base::Clock* clock) : name_(std::move(name)), clock_(clock) {}

  void WorkFor(const std::string& job) {
    listener::ListenerOptions options;
    options.partitions = {QueueOf(job)};
    options.settle_linger = absl::ZeroDuration();
    options.max_dequeue_tasks = 4;
    listeners_[job] =
        listener::QueueListener::Create(
            options, {}, [] { return std::make_unique<Subscriber>(); }, &store_, nullptr, clock_)
            .value();
  }
  void Put(const std::string& job, int messages) {
    EXPECT_TRUE(
        store_.Put(QueueOf(job), std::vector<queue::NewMessage>(static_cast<size_t>(messages)))
            .ok());
  }
  void Die() { server_.reset(); }
  void ParkFor(const std::string& release) { parked_for_ = release; }

  // The instance as the mesh heard it last.
  v1::Instance Heard() const {
    v1::Instance instance;
    v1::InstanceInfo* const info = instance.mutable_info();
    info->set_role(v1::ROLE_PROCESSOR);
    info->set_instance(name_);
    info->set_address(address_);
    *instance.mutable_last_heartbeat() = base::ToProto(clock_->Now());
    for (const auto& [job, listener] : listeners_) {
      v1::HandlerVersion* const handler = info->add_handlers();
      handler->set_job(job);
      handler->set_version(job + "-v7");
      v1::JobLoad* const load = instance.mutable_heartbeat()->add_jobs();
      load->set_job(job);
      load->set_threads_busy(3);
      load->set_threads(3);
      load->set_threads_max(4);
      load->set_items_per_second(12.5);
      *load->mutable_service_time()->mutable_p50() = base::ToProto(absl::Milliseconds(20));
      *load->mutable_service_time()->mutable_p95() = base::ToProto(absl::Milliseconds(80));
    }
    instance.mutable_heartbeat()->set_cpu_cores(1.5);
    instance.mutable_heartbeat()->set_resident_bytes(64 << 20);
    if (!parked_for_.empty()) {
      instance.mutable_heartbeat()->mutable_standby()->set_release(parked_for_);
    }
    return instance;
  }

  listener::ListenerPhase phase(const std::string& job) { return listeners_[job]->phase(); }
  int max_tasks(const std::string& job) { return listeners_[job]->options().max_dequeue_tasks; }
  listener::testing::MemoryStore& store() { return store_; }
  const std::vector<std::string>& retired() const { return retired_; }
  static queue::QueueId QueueOf(const std::string& job) { return {"local", job + "-in-0"}; }

  std::vector<processor::JobListener> Listeners() override {
    std::vector<processor::JobListener> all;
    for (const auto& [job, listener] : listeners_) all.push_back({job, listener});
    return all;
  }
  std::map<std::string, std::string> OpenTroubles() override { return {}; }
  std::string ParkedFor() override { return parked_for_; }
  void Retire(absl::string_view job) override { retired_.emplace_back(job); }

 private:
  std::unique_ptr<rpc::Server> Serve() {
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    return rpc::Server::Start(options, {{v1::WorkerService::service_full_name(), &service_}})
        .value();
  }

  const std::string name_;
  base::Clock* const clock_;  // not owned
  listener::testing::MemoryStore store_{clock_};
  std::map<std::string, std::shared_ptr<listener::QueueListener>> listeners_;
  std::vector<std::string> retired_;
  std::string parked_for_;
  processor::WorkerService service_{this, clock_};
  std::unique_ptr<rpc::Server> server_ = Serve();
  const std::string address_ = server_->addresses().front();
};

// Two processors: "p-1" works for apples and pears, "p-2" for pears.
class WorkerCommandTest : public ClientTest {
 protected:
  WorkerCommandTest() {
    one_.WorkFor("apples");
    one_.WorkFor("pears");
    two_.WorkFor("pears");
    mesh_.others = {one_.Heard(), two_.Heard()};
  }

  TestProcessor one_{"p-1", &clock_};
  TestProcessor two_{"p-2", &clock_};
};

TEST_F(WorkerCommandTest, ListsWhatEachProcessorDoesForEachJob) {
  one_.Put("pears", 5);
  const std::string heard = Rfc3339(clock_.Now());
  const Done done = RunOnServer({"worker", "list"});
  EXPECT_EQ(done.code, kOk) << done.err;
  const std::string wanted = absl::StrCat(
      "INSTANCE  JOB     PHASE      BUSY  ACTIVE  MAX  QUEUE  ITEMS/S   P95  HANDLER    "
      "LAST HEARTBEAT            TROUBLE\n",
      "p-1       apples  listening     3       0    4      0     12.5  80ms  apples-v7  ", heard,
      "  -\n", "p-1       pears   listening     3       0    4      5     12.5  80ms  pears-v7   ",
      heard, "  -\n",
      "p-2       pears   listening     3       0    4      0     12.5  80ms  pears-v7   ", heard,
      "  -\n");
  EXPECT_EQ(done.out, wanted);
}

TEST_F(WorkerCommandTest, SaysWhichReleaseAParkedProcessorWaitsFor) {
  two_.ParkFor("go");
  mesh_.others = {one_.Heard(), two_.Heard()};
  EXPECT_THAT(RunOnServer({"worker", "list"}).out,
              ContainsRegex("p-2 +pears +parked .*parked until release go\n"));
  TestProcessor idle("p-3", &clock_);
  idle.ParkFor("go");
  mesh_.others = {idle.Heard()};
  EXPECT_THAT(RunOnServer({"worker", "list"}).out,
              ContainsRegex("p-3 +- +no job .*parked until release go\n"));
}

TEST_F(WorkerCommandTest, ListsForPrograms) {
  const Done done =
      RunOnServer({"worker", "list", "--instance", "p-2", "--job", "pears", "-o", "json"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_EQ(
      done.out,
      absl::StrCat("[{\"instance\":\"p-2\",\"address\":\"", mesh_.others[1].info().address(),
                   "\",\"job\":\"pears\",\"phase\":\"listening\",\"threads_busy\":3,"
                   "\"threads_active\":0,\"threads_max\":4,\"queue_depth\":0,"
                   "\"items_per_second\":12.5,\"p50_seconds\":0.02,\"p95_seconds\":0.08,"
                   "\"p99_seconds\":null,\"wakeups_push\":0,"
                   "\"wakeups_safety\":0,\"wakeups_scheduled\":0,\"leases_lost\":0,"
                   "\"handler_version\":\"pears-v7\",\"trouble\":\"\",\"last_heartbeat\":\"",
                   Rfc3339(clock_.Now()), "\",\"cpu_cores\":1.5,\"resident_bytes\":67108864}]\n"));
}

TEST_F(WorkerCommandTest, ListsOnlyThoseThatWorkForTheJob) {
  EXPECT_THAT(RunOnServer({"worker", "list", "--job", "apples"}).out,
              AllOf(HasSubstr("p-1"), Not(HasSubstr("pears")), Not(HasSubstr("p-2"))));
}

TEST_F(WorkerCommandTest, ListsOthersAndWhatWasHeardOfOneThatDoesNotAnswer) {
  one_.Die();
  const Done done = RunOnServer({"worker", "list"});
  EXPECT_EQ(done.code, kUnreachable);
  EXPECT_THAT(done.err, StartsWith("muster: p-1: localhost:"));
  EXPECT_THAT(done.out, AllOf(HasSubstr("p-1       apples  no answer     3       3    4"),
                              HasSubstr("p-2       pears   listening")));
}

TEST_F(WorkerCommandTest, TellsWhatKeepsAProcessorFromWorking) {
  v1::Heartbeat& heartbeat = *mesh_.others[1].mutable_heartbeat();
  heartbeat.mutable_jobs(0)->set_trouble("the handler at bills:7800 is away");
  v1::JobLoad* const plums = heartbeat.add_jobs();  // the processor has no listener for it
  plums->set_job("plums");
  plums->set_trouble("no program 'bill' in PATH");
  EXPECT_THAT(RunOnServer({"worker", "list"}).out,
              AllOf(ContainsRegex("p-2 +pears +listening .* the handler at bills:7800 is away\n"),
                    ContainsRegex("p-2 +plums +cannot work .* no program 'bill' in PATH\n")));
  const Done done = RunOnServer({"worker", "list", "--job", "plums", "-o", "json"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("\"job\":\"plums\",\"phase\":\"cannot work\""),
                              HasSubstr("\"trouble\":\"no program 'bill' in PATH\""),
                              HasSubstr("\"threads_max\":null"), Not(HasSubstr("pears"))));
}

TEST_F(WorkerCommandTest, AsksNobodyWhoLeaves) {
  mesh_.others[0].set_leaving(true);
  one_.Die();
  const Done done = RunOnServer({"worker", "list"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_THAT(done.out, HasSubstr("p-1       apples  leaving"));
  EXPECT_EQ(RunOnServer({"worker", "pause", "--all"}).code, kOk);
  const Done named = RunOnServer({"worker", "pause", "--instance", "p-1"});
  EXPECT_EQ(named.code, kUnreachable);
  EXPECT_EQ(named.err, "muster: p-1: it leaves, or has left\n");
}

TEST_F(WorkerCommandTest, ScalesAndStartsThreadsWhereThereIsWork) {
  one_.Put("pears", 5);
  const Done done = RunOnServer({"worker", "scale", "6"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_THAT(
      done.out,
      AllOf(HasSubstr("p-1       apples  at most 6 threads; 0 active, 0 started, 0 messages ready"),
            HasSubstr("p-1       pears   at most 6 threads; 0 active, 6 started, 5 messages ready"),
            HasSubstr("p-2       pears   at most 6 threads; 0 active, 0 started")));
  one_.store().AwaitDeleted(TestProcessor::QueueOf("pears"), 5);
  EXPECT_EQ(two_.max_tasks("pears"), 6);
}

TEST_F(WorkerCommandTest, ScalesOneJobOfOneProcessor) {
  const Done done =
      RunOnServer({"worker", "scale", "2", "--instance", "p-1", "--job", "apples", "-o", "json"});
  EXPECT_EQ(done.out,
            "[{\"instance\":\"p-1\",\"job\":\"apples\",\"threads_max\":2,\"threads_active\":0,"
            "\"started\":0,\"queue_depth\":0}]\n");
  EXPECT_EQ(one_.max_tasks("apples"), 2);
  EXPECT_EQ(one_.max_tasks("pears"), 4);
  EXPECT_EQ(two_.max_tasks("pears"), 4);
}

TEST_F(WorkerCommandTest, RefusesNumbersOfThreadsThatAreNone) {
  for (const char* threads : {"0", "1001", "many"}) {
    EXPECT_EQ(RunOnServer({"worker", "scale", threads}).code, kUsage);
  }
}

TEST_F(WorkerCommandTest, PausesAndResumes) {
  EXPECT_EQ(RunOnServer({"worker", "pause", "--job", "pears"}).out,
            "INSTANCE  JOB    ANSWER\np-1       pears  paused\np-2       pears  paused\n");
  EXPECT_EQ(one_.phase("pears"), listener::ListenerPhase::kPaused);
  EXPECT_EQ(one_.phase("apples"), listener::ListenerPhase::kListening);
  EXPECT_THAT(RunOnServer({"worker", "list"}).out, HasSubstr("p-2       pears   paused"));
  EXPECT_EQ(RunOnServer({"worker", "resume", "-o", "json"}).out,
            "[{\"instance\":\"p-1\",\"job\":\"\",\"answer\":\"resumed\"},"
            "{\"instance\":\"p-2\",\"job\":\"\",\"answer\":\"resumed\"}]\n");
  EXPECT_EQ(two_.phase("pears"), listener::ListenerPhase::kListening);
}

TEST_F(WorkerCommandTest, ResumesWithTheWordsThatPaused) {
  EXPECT_EQ(RunOnServer({"worker", "pause", "--all"}).code, kOk);
  EXPECT_EQ(RunOnServer({"worker", "resume", "--all"}).code, kOk);
  EXPECT_EQ(one_.phase("pears"), listener::ListenerPhase::kListening);
  EXPECT_EQ(RunOnServer({"worker", "resume", "--all", "--instance", "p-1"}).code, kUsage);
}

TEST_F(WorkerCommandTest, PausesAllOnlyWhenItIsAskedTo) {
  EXPECT_EQ(RunOnServer({"worker", "pause"}).code, kUsage);
  EXPECT_THAT(RunOnServer({"worker", "pause"}).err, HasSubstr("--all"));
  EXPECT_EQ(RunOnServer({"worker", "pause", "--all", "--instance", "p-1"}).code, kUsage);
  EXPECT_EQ(one_.phase("pears"), listener::ListenerPhase::kListening);
  EXPECT_EQ(RunOnServer({"worker", "pause", "--all"}).code, kOk);
  EXPECT_EQ(one_.phase("pears"), listener::ListenerPhase::kPaused);
  EXPECT_EQ(two_.phase("pears"), listener::ListenerPhase::kPaused);
}

TEST_F(WorkerCommandTest, PausesTheOthersThoughOneDoesNotAnswer) {
  one_.Die();
  const Done done = RunOnServer({"worker", "pause", "--all"});
  EXPECT_EQ(done.code, kUnreachable);
  EXPECT_THAT(done.err, StartsWith("muster: p-1: localhost:"));
  EXPECT_THAT(done.out, HasSubstr("p-2       all  paused"));
  EXPECT_EQ(two_.phase("pears"), listener::ListenerPhase::kPaused);
}

TEST_F(WorkerCommandTest, SaysWhenNobodyWorksForAJobOrHasAName) {
  const Done job = RunOnServer({"worker", "pause", "--job", "plums"});
  EXPECT_EQ(job.code, kError);
  EXPECT_EQ(job.err, "muster: no processor works for job 'plums'\n");
  const Done of_one = RunOnServer({"worker", "pause", "--job", "apples", "--instance", "p-2"});
  EXPECT_EQ(of_one.code, kError);
  EXPECT_THAT(of_one.err, HasSubstr("p-2: this processor has no listener for job 'apples'"));
  const Done name = RunOnServer({"worker", "pause", "--instance", "p-3"});
  EXPECT_EQ(name.code, kError);
  EXPECT_THAT(name.err, HasSubstr("has not heard of a processor 'p-3' lately"));
}

TEST_F(WorkerCommandTest, DrainsForGoodThoseThatAreNamed) {
  EXPECT_EQ(RunOnServer({"worker", "drain", "--instance", "p-2", "--grace", "5s"}).out,
            "INSTANCE  JOB  ANSWER\np-2       all  drained; 0 messages given back\n");
  EXPECT_EQ(two_.phase("pears"), listener::ListenerPhase::kStopped);
  EXPECT_THAT(two_.retired(), ElementsAre(""));
  EXPECT_EQ(one_.phase("pears"), listener::ListenerPhase::kListening);
  EXPECT_EQ(RunOnServer({"worker", "drain", "--all", "--job", "apples"}).code, kOk);
  EXPECT_THAT(one_.retired(), ElementsAre("apples"));
}

TEST_F(WorkerCommandTest, DrainsNobodyUnlessToldWhom) {
  EXPECT_EQ(RunOnServer({"worker", "drain"}).code, kUsage);
  EXPECT_EQ(RunOnServer({"worker", "drain", "--all", "--instance", "p-1"}).code, kUsage);
  EXPECT_EQ(RunOnServer({"worker", "drain", "--all", "--grace", "soon"}).code, kUsage);
  EXPECT_THAT(one_.retired(), IsEmpty());
}

TEST_F(WorkerCommandTest, ShowsNothingWhereThereIsNoProcessorAndCannotPauseIt) {
  mesh_.others.clear();
  const Done listed = RunOnServer({"worker", "list", "-o", "json"});
  EXPECT_EQ(listed.code, kOk);
  EXPECT_EQ(listed.out, "[]\n");
  const Done paused = RunOnServer({"worker", "pause", "--all"});
  EXPECT_EQ(paused.code, kUnreachable);
  EXPECT_THAT(paused.err, HasSubstr("it has heard of no processor"));
}

TEST_F(WorkerCommandTest, NeedsAServerThatAnswers) {
  EXPECT_EQ(Run({"worker", "list"}).code, kError);
  const std::string address = server();
  initiator_.reset();
  const Done done = Run({"worker", "list", "--server", address});
  EXPECT_EQ(done.code, kUnreachable);
  EXPECT_THAT(done.err, StartsWith(absl::StrCat("muster: ", address, ": ")));
}

}  // namespace
}  // namespace muster::cli
