// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/external_scaler_service.h"

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/bus/local/local_buses.h"
#include "muster/bus/trigger_bus.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/scaling-agent/agent_fixture.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::scaling_agent {
namespace {

using externalscaler::ExternalScaler;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kExternallyScaled[] =
    "targets:\n"
    "  billing: {kind: process, name: p, queues: [in], sla: {max: 60s}, max: 10,\n"
    "            actuator: external}\n"
    "  rating: {kind: process, name: r, queues: [other-0]}\n";

externalscaler::ScaledObjectRef ScaledObject(const std::string& target) {
  externalscaler::ScaledObjectRef ref;
  ref.set_name("processor");
  ref.set_namespace_("mesh");
  if (!target.empty()) (*ref.mutable_scalermetadata())[kTargetKey] = target;
  (*ref.mutable_scalermetadata())["scalerAddress"] = "muster-scaling-agent:7703";
  return ref;
}

// An agent with its threads, served on loopback at the address that it tells others.
class Served {
 public:
  struct Mesh {
    base::Clock* clock;
    std::string rules_file;
    queue::QueueStore* queues;
    sync::OptimisticSyncStore* sync;
    bus::TriggerBus* bus;
  };

  Served(const std::string& name, const Mesh& mesh) : roster_(mesh.clock), streams_(mesh.clock) {
    std::vector<rpc::ListenSockets> sockets = Reserve();
    MakeAgent(name, mesh);
    service_ = std::make_unique<ExternalScalerService>(&*agent_, &streams_, rpc::ChannelOptions(),
                                                       mesh.clock);
    auto started = rpc::Server::Start(
        options_, {{ExternalScaler::service_full_name(), service_.get()}}, std::move(sockets));
    EXPECT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    rpc::ChannelOptions as_keda;  // which tries nothing again
    as_keda.retry_unavailable = false;
    stub_ = ExternalScaler::NewStub(*rpc::OpenChannel(address(), as_keda));
  }
  ~Served() {
    Stop();
    server_->Drain(absl::ZeroDuration());
  }

  void Stop() {
    streams_.Drain();
    agent_->Stop();
  }
  const std::string& address() const { return options_.addresses.front(); }
  Agent& agent() { return *agent_; }
  const FakeActuator& actuator() const { return actuator_; }
  ExternalScaler::Stub& stub() { return *stub_; }

  absl::StatusOr<bool> IsActive(const std::string& target, bool passed_on = false) {
    rpc::CallContext context;
    if (passed_on) context.AddMetadata(kPassedOn, "1");
    externalscaler::IsActiveResponse response;
    const absl::Status called =
        rpc::FromGrpc(stub_->IsActive(&context, ScaledObject(target), &response));
    if (!called.ok()) return called;
    return response.result();
  }
  // What an autoscaler makes of the metric.
  absl::StatusOr<double> Replicas(const std::string& target,
                                  const std::string& metric = kDesiredMetric) {
    rpc::CallContext context;
    externalscaler::GetMetricsRequest request;
    *request.mutable_scaledobjectref() = ScaledObject(target);
    request.set_metricname(metric);
    externalscaler::GetMetricsResponse response;
    const absl::Status called = rpc::FromGrpc(stub_->GetMetrics(&context, request, &response));
    if (!called.ok()) return called;
    EXPECT_EQ(response.metricvalues_size(), 1);
    const externalscaler::MetricValue& value = response.metricvalues(0);
    EXPECT_EQ(value.metricname(), kDesiredMetric);
    EXPECT_EQ(value.metricvalue(), value.metricvaluefloat());
    return value.metricvaluefloat();
  }
  bool Wants(const std::string& target, int replicas) {
    const absl::StatusOr<double> wanted = Replicas(target);
    return wanted.ok() && *wanted == replicas;
  }
  absl::StatusOr<externalscaler::MetricSpec> Spec(const std::string& target) {
    rpc::CallContext context;
    externalscaler::GetMetricSpecResponse response;
    const absl::Status called =
        rpc::FromGrpc(stub_->GetMetricSpec(&context, ScaledObject(target), &response));
    if (!called.ok()) return called;
    EXPECT_EQ(response.metricspecs_size(), 1);
    return response.metricspecs(0);
  }

 private:
  // Others learn the address from the agent, which exists before its server.
  std::vector<rpc::ListenSockets> Reserve() {
    options_.addresses = {"localhost:0"};
    auto reserved = rpc::Server::Start(options_, {});
    EXPECT_TRUE(reserved.ok()) << reserved.status();
    options_.addresses = (*reserved)->addresses();
    return (*reserved)->HandOver();
  }
  void MakeAgent(const std::string& name, const Mesh& mesh) {
    auto rules =
        scaling::rules::RulesWatch::Open(mesh.rules_file, absl::ZeroDuration(), mesh.clock);
    EXPECT_TRUE(rules.ok()) << rules.status();
    AgentOptions options;
    // So long that an agent does not lose it while the test's time runs ahead of its threads.
    options.election = {name, address(), absl::Minutes(30)};
    options.loop.account = kTestAccount;
    AgentDependencies deps;
    deps.queues = mesh.queues;
    deps.sync = mesh.sync;
    deps.bus = mesh.bus;
    deps.actuator = &actuator_;
    deps.clock = mesh.clock;
    deps.roster = [this] { return roster_.List(v1::ROLE_PROCESSOR); };
    deps.on_desired = [this](const std::string& target, std::optional<int> desired) {
      streams_.Update(target, desired);
    };
    agent_.emplace(std::move(options), std::move(deps), *std::move(rules));
  }

  rpc::ServerOptions options_;
  bus::Roster roster_;
  FakeActuator actuator_;
  ActivityStreams streams_;
  std::optional<Agent> agent_;
  std::unique_ptr<ExternalScalerService> service_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<ExternalScaler::Stub> stub_;
};

// Reads a stream on a thread of its own, as the test moves the clock meanwhile. What is said again
// counts once.
class Activity {
 public:
  Activity(Served& served, const std::string& target)
      : reader_(served.stub().StreamIsActive(&context_, ScaledObject(target))),
        thread_([this] { Read(); }) {}
  ~Activity() {
    context_.TryCancel();
    if (thread_.joinable()) thread_.join();
  }

  std::vector<bool> told() {
    base::MutexLock lock(&mu_);
    return told_;
  }
  bool ended() {
    base::MutexLock lock(&mu_);
    return end_.has_value();
  }
  absl::Status end() {
    thread_.join();
    base::MutexLock lock(&mu_);
    return *end_;
  }

 private:
  void Read() {
    externalscaler::IsActiveResponse response;
    while (reader_->Read(&response)) {
      base::MutexLock lock(&mu_);
      if (told_.empty() || told_.back() != response.result()) told_.push_back(response.result());
    }
    const absl::Status end = rpc::FromGrpc(reader_->Finish());
    base::MutexLock lock(&mu_);
    end_ = end;
  }

  rpc::CallContext context_{absl::Minutes(2)};
  std::unique_ptr<grpc::ClientReader<externalscaler::IsActiveResponse>> reader_;
  base::Mutex mu_;
  std::vector<bool> told_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

class ExternalScalerServiceTest : public ::testing::Test {
 protected:
  ExternalScalerServiceTest() {
    std::ofstream(dir_ / "rules.yaml") << kExternallyScaled;
    queues_.Create("in-0");
  }

  std::unique_ptr<Served> Make(const std::string& name) {
    return std::make_unique<Served>(
        name, Served::Mesh{&clock_, dir_ / "rules.yaml", queues_.store(), &sync_, &bus_});
  }
  std::unique_ptr<Served> Start(const std::string& name) {
    std::unique_ptr<Served> served = Make(name);
    EXPECT_TRUE(served->agent().Start().ok());
    sleepers_ += kThreads;
    return served;
  }
  // One that leads and has decided.
  std::unique_ptr<Served> StartLeader() {
    std::unique_ptr<Served> served = Start("a");
    AdvanceUntil([&] { return served->Replicas("billing").ok(); });
    return served;
  }

  // Time waits for the agents' threads: left behind, they would take their readings for too old.
  template <typename Done>
  void AdvanceUntil(Done done) {
    while (!done()) {
      if (sleepers_ > 0) clock_.AwaitSleepers(sleepers_);
      clock_.Advance(absl::Milliseconds(10));
      base::LetOthersRun();
    }
  }
  void PutWork(int items) {
    queues_.Put("in-0", items);
    ASSERT_TRUE(bus_.Publish(bus::WorkDetected("initiator", kTestAccount, "in-0", items)).ok());
  }
  void FinishWork() { ASSERT_TRUE(queues_.store()->Clear({kTestAccount, "in-0"}).ok()); }

  // Of an agent: three of its own, and three of each target.
  static constexpr int kThreads = 3 + 2 * 3;

  base::FakeClock clock_;
  int sleepers_ = 0;  // threads that wait for the clock; 0: not known
  const os::TempDir dir_;
  TestQueues queues_{&clock_};
  sync::testing::MemorySyncStore sync_;
  bus::local::LocalTriggerBus bus_;
};

TEST_F(ExternalScalerServiceTest, OneReplicaStandsForOneOfTheMetric) {
  const auto served = Make("a");
  const auto spec = served->Spec("billing");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->metricname(), "muster_scale_desired");
  EXPECT_EQ(spec->targetsize(), 1);
  EXPECT_EQ(spec->targetsizefloat(), 1);
}

// KEDA then asks no more, and goes on with GetMetricSpec.
TEST_F(ExternalScalerServiceTest, ItsMetricNeverChanges) {
  const auto served = Make("a");
  rpc::CallContext context;
  externalscaler::GetMetricSpecResponse response;
  const auto stream = served->stub().StreamMetricSpec(&context, ScaledObject("billing"));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(absl::IsUnimplemented(rpc::FromGrpc(stream->Finish())));
}

TEST_F(ExternalScalerServiceTest, SaysWhatTheMetadataLack) {
  const auto served = StartLeader();
  for (const absl::Status& status : {served->IsActive("").status(), served->Spec("").status(),
                                     served->Replicas("").status(), Activity(*served, "").end()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(),
              "scalerMetadata.target: must name a target of the rules: billing, rating");
  }
  for (const absl::Status& status :
       {served->IsActive("mail").status(), served->Spec("mail").status(),
        served->Replicas("mail").status(), Activity(*served, "mail").end()}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_EQ(status.message(), "the rules have no target 'mail', but billing, rating");
  }
  const absl::Status status = served->Replicas("billing", "queue_length").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("muster_scale_desired"));
}

TEST_F(ExternalScalerServiceTest, ServesWhatTheAgentDecidesAndLeavesTheReplicasAlone) {
  const auto served = StartLeader();
  EXPECT_EQ(*served->Replicas("billing"), 0);
  EXPECT_EQ(*served->IsActive("billing"), false);
  PutWork(5);
  AdvanceUntil([&] { return served->Wants("billing", 1); });
  EXPECT_EQ(*served->IsActive("billing"), true);
  ASSERT_TRUE(
      served->agent().SetOverride({"billing", 7, clock_.Now() + absl::Hours(1), "me"}).ok());
  AdvanceUntil([&] { return served->Wants("billing", 7) && served->Wants("rating", 0); });
  AdvanceUntil([until = clock_.Now() + absl::Seconds(3), this] { return clock_.Now() > until; });
  EXPECT_THAT(served->actuator().ordered(), IsEmpty());
  const auto decision = served->agent().decisions()->Last("billing");
  EXPECT_EQ(decision->action().state(), v1::ScalingAction::STATE_NOT_ASKED);
  EXPECT_EQ(decision->action().detail(), "another autoscaler carries it out");
}

TEST_F(ExternalScalerServiceTest, PushesAsWorkComesAndWhenItIsDone) {
  const auto served = StartLeader();
  Activity activity(*served, "billing");
  AdvanceUntil([&] { return activity.told() == std::vector<bool>{false}; });
  PutWork(5);
  AdvanceUntil([&] { return activity.told().size() == 2; });
  FinishWork();
  AdvanceUntil([&] { return activity.told().size() == 3; });
  EXPECT_THAT(activity.told(), ElementsAre(false, true, false));
  EXPECT_EQ(*served->Replicas("billing"), 0);
  served->Stop();
  EXPECT_TRUE(activity.end().ok());
}

TEST_F(ExternalScalerServiceTest, WithoutALeaderItIsUnavailable) {
  const auto served = Make("a");
  for (const absl::Status& status :
       {served->IsActive("billing").status(), served->Replicas("billing").status()}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(status.ToString(), HasSubstr("no scaling agent leads now"));
  }
  EXPECT_TRUE(Activity(*served, "billing").end().ok()) << "KEDA asks again after two seconds";
  EXPECT_TRUE(served->Spec("billing").ok());
}

TEST_F(ExternalScalerServiceTest, OneThatDoesNotLeadAnswersWithWhatTheLeaderSays) {
  const auto leader = StartLeader();
  const auto other = Start("b");
  AdvanceUntil([&] { return other->agent().leader_address() == leader->address(); });
  EXPECT_EQ(*other->Replicas("billing"), 0);
  EXPECT_EQ(*other->IsActive("billing"), false);
  Activity activity(*other, "billing");
  AdvanceUntil([&] { return activity.told() == std::vector<bool>{false}; });
  PutWork(5);
  AdvanceUntil([&] { return activity.told() == std::vector<bool>({false, true}); });
  EXPECT_EQ(*other->Replicas("billing"), 1);
  EXPECT_TRUE(absl::IsUnavailable(other->IsActive("billing", true).status()))
      << "what was passed on once is not passed on again";

  leader->Stop();
  sleepers_ -= kThreads;
  EXPECT_TRUE(activity.end().ok());
  AdvanceUntil([&] { return other->agent().leads() && other->Wants("billing", 1); });
  Activity next(*other, "billing");
  AdvanceUntil([&] { return next.told() == std::vector<bool>{true}; });
}

TEST_F(ExternalScalerServiceTest, AStreamEndsWithItsTarget) {
  const auto served = StartLeader();
  Activity activity(*served, "billing");
  AdvanceUntil([&] { return !activity.told().empty(); });
  std::ofstream(dir_ / "rules.yaml")
      << "targets: {rating: {kind: process, name: r, queues: [other-0]}}\n";
  sleepers_ = 0;
  AdvanceUntil([&] { return activity.ended(); });
  EXPECT_TRUE(activity.end().ok());
  EXPECT_TRUE(absl::IsNotFound(served->IsActive("billing").status()));
}

}  // namespace
}  // namespace muster::scaling_agent
