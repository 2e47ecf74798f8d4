// SPDX-License-Identifier: Apache-2.0
#include "services/host/host.h"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "muster/base/damage.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/os/notify_socket.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/status.h"
#include "muster/telemetry/metrics_server.h"
#include "muster/v1/queue_service.grpc.pb.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/bus/mesh_fixture.h"
#include "tests/fakes/nats/nats_server.h"
#include "tests/fakes/telemetry/peer.h"

namespace muster::host {

namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TestQueues final : public v1::QueueService::Service {
  grpc::Status GetQueueStats(grpc::ServerContext*, const v1::GetQueueStatsRequest*,
                             v1::GetQueueStatsResponse*) override {
    return {grpc::StatusCode::NOT_FOUND, "this is the role"};
  }
};

// Records the calls of its host.
class TestRole final : public Role {
 public:
  std::vector<rpc::ServedService> services() override {
    return {{v1::QueueService::service_full_name(), &queues_}};
  }

  absl::Status Open(const Stores& stores, const Fail& fail) override {
    stores_ = stores;
    fail_ = fail;
    absl::Status opened = std::exchange(next_open_, absl::OkStatus());
    Note("open");
    return opened;
  }
  bool shows_nats_streams() const override { return shows_nats_streams_; }
  void OnStoresBack() override { Note("back"); }
  void Drain(absl::Duration grace) override {
    if (on_drain_) on_drain_();
    Note(absl::StrCat("drain ", absl::FormatDuration(grace)));
  }
  void Close() override {
    Note("close");
    EXPECT_TRUE(stores_.sync->Get("k").ok());  // the stores are still open
  }

  void Note(const std::string& event) {
    base::MutexLock lock(&mu_);
    events_.push_back(event);
    changed_.NotifyAll();
  }
  std::vector<std::string> AwaitEvents(size_t count) {
    base::MutexLock lock(&mu_);
    while (events_.size() < count) changed_.Wait(&mu_);
    return events_;
  }

  // Set these before the host starts; AwaitEvents reads them after "open".
  absl::Status next_open_;
  std::function<void()> on_drain_;
  bool shows_nats_streams_ = false;
  Stores stores_;
  Fail fail_;

 private:
  TestQueues queues_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mu_);
};

// Receives each change of a host's health, also when the host replaces its server.
class HealthWatch {
 public:
  explicit HealthWatch(std::shared_ptr<grpc::Channel> channel) : channel_(std::move(channel)) {
    Begin();
  }
  ~HealthWatch() { End(); }
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;

  std::string Next() {
    HealthCheckResponse response;
    while (!reader_->Read(&response)) {
      End();
      Begin();
    }
    return HealthCheckResponse::ServingStatus_Name(response.status());
  }
  void Await(absl::string_view status) {
    while (Next() != status) continue;
  }

 private:
  void Begin() {
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_wait_for_ready(true);
    reader_ = stub_->Watch(context_.get(), HealthCheckRequest());
  }
  void End() {
    context_->TryCancel();
    reader_->Finish();
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<Health::Stub> stub_ = Health::NewStub(channel_);
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader_;
};

class HostTest : public ::testing::Test {
 protected:
  HostTest() {
    options_.listen = {"localhost:0"};
    options_.nats_url = server_.url();
    options_.instance = "tested";
  }
  ~HostTest() override { Stop().IgnoreError(); }

  void Start() {
    absl::StatusOr<std::unique_ptr<Host>> host = Host::Start(options_, &role_, base::RealClock());
    ASSERT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
    serving_ = std::thread([this] { served_ = host_->Serve(stop_.get_token()); });
  }
  // Returns the result of Serve.
  absl::Status Stop() {
    stop_.request_stop();
    return Await();
  }
  absl::Status Await() {
    if (serving_.joinable()) serving_.join();
    return served_;
  }

  std::shared_ptr<grpc::Channel> Connect() {
    return rpc::OpenChannel(host_->addresses().front()).value();
  }
  // `until_served`: repeats the call until the role answers instead of the host itself.
  absl::Status GetStats(bool until_served) {
    rpc::ChannelOptions options;
    options.retry_unavailable = false;
    const auto channel = rpc::OpenChannel(host_->addresses().front(), options).value();
    absl::Status status;
    do {
      rpc::CallContext context;
      v1::GetQueueStatsResponse response;
      status =
          rpc::FromGrpc(v1::QueueService::NewStub(channel)->GetQueueStats(&context, {}, &response));
      // gRPC cuts off a call that comes while one server replaces the other.
    } while (until_served && (absl::IsUnavailable(status) || absl::IsCancelled(status)));
    return status;
  }
  std::string MetricsAddress() const {
    const std::vector<std::string> lines = log_.lines();
    for (const std::string& line : lines) {
      const size_t at = line.find("msg=metrics at=");
      if (at == line.npos) continue;
      const size_t begin = at + sizeof("msg=metrics at=") - 1;
      return line.substr(begin, line.find("/metrics") - begin);
    }
    return "";
  }
  // GETs a path where metrics are served.
  std::string Probe(absl::string_view path) const {
    return telemetry::Peer(MetricsAddress()).Ask(absl::StrCat("GET ", path, " HTTP/1.0\r\n\r\n"));
  }
  std::string Metrics() const { return Probe("/metrics"); }
  bool Logged(absl::string_view text) const {
    const std::vector<std::string> lines = log_.lines();
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return absl::StrContains(line, text); });
  }

  base::LogCapture log_;
  nats::testing::NatsServer server_;
  HostOptions options_{kProcessor};
  TestRole role_;
  std::unique_ptr<Host> host_;
  std::stop_source stop_;
  std::thread serving_;
  absl::Status served_;
};

TEST_F(HostTest, ServesMetricsAlsoBeforeItIsReady) {
  options_.metrics = "127.0.0.1:0";
  server_.Kill();
  Start();
  EXPECT_THAT(Metrics(), HasSubstr("muster_build_info{version=\""));
  server_.Restart();
  role_.AwaitEvents(1);
  ASSERT_NE(role_.stores_.metrics, nullptr);
  EXPECT_THAT(Metrics(), HasSubstr("muster_nats_reconnects_total{connection=\"main\"} 0\n"));
  GetStats(/*until_served=*/true).IgnoreError();
  while (!absl::StrContains(Metrics(),
                            "rpc_server_call_duration_seconds_count{method=\"muster.v1."
                            "QueueService/GetQueueStats\",code=\"NOT_FOUND\"} 1\n")) {
    base::LetOthersRun();  // the call is measured after its answer is sent
  }
}

TEST_F(HostTest, ShowsWhatTheNatsServerKeepsWhereTheRoleAsksForIt) {
  options_.metrics = "127.0.0.1:0";
  role_.shows_nats_streams_ = true;
  Start();
  role_.AwaitEvents(1);
  ASSERT_TRUE(role_.stores_.queues->CreateQueue({"acme", "work"}, {}).ok());
  ASSERT_TRUE(role_.stores_.queues->Put({"acme", "work"}, std::vector<queue::NewMessage>(2)).ok());
  const std::string shown = Metrics();
  EXPECT_THAT(shown, HasSubstr("muster_nats_stream_messages{stream=\"MUSTER_acme_work\"} 2\n"));
  EXPECT_THAT(shown, HasSubstr("muster_nats_stream_consumers{stream=\"MUSTER_acme_work\"} 1\n"));
  EXPECT_THAT(shown, HasSubstr("muster_nats_stream_limit_used{stream=\"MUSTER-ATTEMPTS\"} 0"));
  EXPECT_THAT(shown, HasSubstr("muster_nats_storage_bytes{kind=\"used\"} "));
  server_.Kill();
  while (!Logged("not ready")) base::LetOthersRun();
  EXPECT_THAT(Metrics(), HasSubstr("muster_metrics_read_failures_total{source=\"streams\"} 1\n"));
  server_.Restart();
  HealthWatch(Connect()).Await("SERVING");
}

TEST_F(HostTest, NamesItsInstallationInItsHeartbeats) {
  options_.account = "acme";
  options_.nats.bucket = "records";
  Start();
  role_.AwaitEvents(1);
  std::promise<std::string> heard;
  const auto subscription = role_.stores_.heartbeats->Subscribe(
      [&](const v1::Heartbeat& beat) { heard.set_value(beat.instance().installation()); });
  ASSERT_TRUE(subscription.ok());
  ASSERT_TRUE(
      role_.stores_.heartbeats->Publish(bus::Heartbeat(v1::ROLE_PROCESSOR, "tested", 1)).ok());
  EXPECT_EQ(heard.get_future().get(), "acme/records");
}

TEST_F(HostTest, ShowsTheDamageThatThisProcessHasMet) {
  options_.metrics = "127.0.0.1:0";
  Start();
  role_.AwaitEvents(1);
  const std::string blob = "muster_damage_found_total{where=\"blob\"} ";
  const uint64_t before = base::DamageMet(base::Damaged::kBlob);
  EXPECT_THAT(Metrics(), HasSubstr(absl::StrCat(blob, before, "\n")));
  EXPECT_THAT(Metrics(), HasSubstr("muster_damage_found_total{where=\"report\"} "));
  base::NoteDamage(base::Damaged::kBlob);
  EXPECT_THAT(Metrics(), HasSubstr(absl::StrCat(blob, before + 1, "\n")));
}

TEST_F(HostTest, TellsProbesWhyItIsNotReady) {
  options_.metrics = "127.0.0.1:0";
  server_.Kill();
  Start();
  while (!Logged("not ready: what is needed does not answer")) std::this_thread::yield();
  EXPECT_THAT(Probe("/healthz"), HasSubstr("HTTP/1.1 200 "));
  EXPECT_THAT(Probe("/readyz"), AllOf(HasSubstr("HTTP/1.1 503 "),
                                      HasSubstr("it is starting, and waits for the queues: ")));
  server_.Restart();
  role_.AwaitEvents(1);
  HealthWatch health(Connect());
  health.Await("SERVING");
  EXPECT_THAT(Probe("/readyz"), AllOf(HasSubstr("HTTP/1.1 200 "), HasSubstr("\r\n\r\nready\n")));
  server_.Kill();
  health.Await("NOT_SERVING");
  EXPECT_THAT(Probe("/readyz"), AllOf(HasSubstr("HTTP/1.1 503 "), HasSubstr("NATS server")));
  server_.Restart();
  health.Await("SERVING");
  std::string while_draining;
  role_.on_drain_ = [&] { while_draining = Probe("/readyz"); };
  EXPECT_EQ(Stop(), absl::OkStatus());
  EXPECT_THAT(while_draining, AllOf(HasSubstr("HTTP/1.1 503 "), HasSubstr("it drains")));
}

TEST_F(HostTest, MeasuresNothingUnlessItIsTold) {
  Start();
  role_.AwaitEvents(1);
  EXPECT_EQ(role_.stores_.metrics, nullptr);
}

TEST_F(HostTest, DoesNotStartWhereThePortOfItsMetricsIsInUse) {
  options_.metrics = "127.0.0.1:0";
  Start();
  HostOptions second = options_;
  second.metrics = MetricsAddress();
  const absl::Status started = Host::Start(second, &role_, base::RealClock()).status();
  EXPECT_EQ(started.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(started.message()), HasSubstr("Address already in use"));
  EXPECT_THAT(std::string(started.message()), HasSubstr(second.metrics));
}

TEST_F(HostTest, GoesOnWithoutMetricsWhereTheirDefaultPortIsInUse) {
  const telemetry::MetricsServerOptions other{.address = "127.0.0.1:0"};
  const auto holds = telemetry::MetricsServer::Start(other, [](auto) { return ""; });
  ASSERT_TRUE(holds.ok()) << holds.status();
  options_.metrics = (*holds)->address();
  options_.metrics_are_default = true;
  Start();
  role_.AwaitEvents(1);
  EXPECT_EQ(role_.stores_.metrics, nullptr) << "which nobody would see";
  EXPECT_TRUE(Logged("--metrics HOST:PORT names another one"));
  EXPECT_TRUE(Logged(options_.metrics));
}

TEST_F(HostTest, ShowsMetricsToOthersOnlyIfItIsTold) {
  options_.metrics = "0.0.0.0:0";
  const absl::Status started = Host::Start(options_, &role_, base::RealClock()).status();
  EXPECT_EQ(started.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(started.message()), HasSubstr("--allow-plaintext-metrics"));
  options_.allow_plaintext_metrics = true;
  EXPECT_TRUE(Host::Start(options_, &role_, base::RealClock()).ok());
}

TEST_F(HostTest, SaysWhichServerDoesNotAnswerAndOpensOnceItDoes) {
  server_.Kill();
  Start();
  HealthWatch health(Connect());
  EXPECT_EQ(health.Next(), "NOT_SERVING");
  while (!Logged("not ready: what is needed does not answer")) base::LetOthersRun();
  EXPECT_TRUE(Logged(absl::StrCat("where=", server_.url())));
  EXPECT_TRUE(Logged("again_in="));
  server_.Restart();
  health.Await("SERVING");
  EXPECT_TRUE(Logged("what was needed answers"));
  EXPECT_THAT(role_.AwaitEvents(1), ElementsAre("open"));
  EXPECT_EQ(Stop(), absl::OkStatus());
}

TEST_F(HostTest, TellsItsRoleThatTheStoresAreBack) {
  Start();
  role_.AwaitEvents(1);
  HealthWatch health(Connect());
  health.Await("SERVING");
  server_.Kill();
  health.Await("NOT_SERVING");
  server_.Restart();
  EXPECT_THAT(role_.AwaitEvents(2), ElementsAre("open", "back"));
  EXPECT_EQ(Stop(), absl::OkStatus());
}

TEST_F(HostTest, TellsCallersWhatItWaitsForUntilItServesItsRole) {
  server_.Kill();
  Start();
  while (!Logged("not ready: what is needed does not answer")) base::LetOthersRun();
  const absl::Status early = GetStats(false);
  EXPECT_TRUE(absl::IsUnavailable(early)) << early;
  EXPECT_THAT(early.message(), HasSubstr("tested is starting, and waits for the queues"));
  EXPECT_EQ(rpc::RetryAfter(early), rpc::kRetryUnavailable);
  server_.Restart();
  role_.AwaitEvents(1);
  EXPECT_EQ(GetStats(true), absl::NotFoundError("this is the role"));
}

TEST_F(HostTest, IsNotReadyWhileItsServerIsAway) {
  Start();
  role_.AwaitEvents(1);
  HealthWatch health(Connect());
  health.Await("SERVING");
  server_.Kill();
  EXPECT_EQ(health.Next(), "NOT_SERVING");
  server_.Restart();
  EXPECT_EQ(health.Next(), "SERVING");
}

// To systemd, or to the keeper of a replica: whatever the log shows.
TEST_F(HostTest, TellsWhatStartedItWhetherItIsReady) {
  auto starter = os::NotifySocket::Open();
  ASSERT_TRUE(starter.ok()) << starter.status();
  options_.notify_socket = starter->name();
  const auto next = [&starter] {
    pollfd told{starter->fd(), POLLIN, 0};
    poll(&told, 1, -1);
    return starter->TakeReadiness();
  };
  base::SetMinLogLevel(base::kError);
  Start();
  EXPECT_EQ(next(), true);
  server_.Kill();
  EXPECT_EQ(next(), false);
  server_.Restart();
  EXPECT_EQ(next(), true);
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(next(), false);
  base::SetMinLogLevel(base::kInfo);
}

// For probes that have no certificate.
TEST_F(HostTest, AnswersHealthWithoutTlsWhereItIsTold) {
  options_.health = "0.0.0.0:0";
  server_.Kill();
  Start();
  HealthWatch health(
      rpc::OpenChannel(absl::StrReplaceAll(host_->health_address(), {{"0.0.0.0", "127.0.0.1"}}))
          .value());
  EXPECT_EQ(health.Next(), "NOT_SERVING");
  server_.Restart();
  EXPECT_EQ(health.Next(), "SERVING");
  server_.Kill();
  EXPECT_EQ(health.Next(), "NOT_SERVING");
  server_.Restart();
  EXPECT_EQ(health.Next(), "SERVING");
}

TEST_F(HostTest, EndsWhenToldToThoughNothingAnswers) {
  server_.Kill();
  Start();
  EXPECT_EQ(Stop(), absl::OkStatus());
}

TEST_F(HostTest, DrainsTheRoleWhileItStillAnswersAndThenLetsGoOfTheStores) {
  std::string health_while_draining;
  role_.on_drain_ = [&] { health_while_draining = HealthWatch(Connect()).Next(); };
  options_.drain_grace = absl::Seconds(7);
  Start();
  role_.AwaitEvents(1);
  EXPECT_EQ(Stop(), absl::OkStatus());
  EXPECT_EQ(health_while_draining, "NOT_SERVING");
  EXPECT_THAT(role_.AwaitEvents(3), ElementsAre("open", "drain 7s", "close"));
}

TEST_F(HostTest, OpensARoleAgainThatLackedSomething) {
  role_.next_open_ = absl::UnavailableError("not yet");
  Start();
  EXPECT_THAT(role_.AwaitEvents(2), ElementsAre("open", "open"));
}

// The streams and buckets of a process on its NATS server, created with other settings by another
// client.
TEST_F(HostTest, WaitsForAStreamThatIsSetOtherwiseUntilItIsMended) {
  const auto connection = nats::Connection::Open(server_.url(), {}).value();
  nats::JetStream jetstream(connection.get(), absl::Seconds(30));
  const std::vector<std::vector<std::string>> streams = {
      {"MUSTER-ATTEMPTS", "muster.attempts.>", "file", "memory"},
      {"KV_muster", "$KV.muster.>", "memory", "file"},
      {"OBJ_muster", "$O.muster.C.>", "memory", "file"}};
  for (const auto& stream : streams) {
    ASSERT_TRUE(
        jetstream
            .EnsureStream({{"name", stream[0]}, {"subjects", {stream[1]}}, {"storage", stream[2]}})
            .ok());
  }
  Start();
  HealthWatch health(Connect());
  EXPECT_EQ(health.Next(), "NOT_SERVING");
  for (const auto& stream : streams) {
    while (!Logged(absl::StrCat("stream ", stream[0], " is there"))) base::LetOthersRun();
    const absl::Status early = GetStats(false);
    EXPECT_TRUE(absl::IsUnavailable(early)) << early;
    EXPECT_THAT(early.message(), HasSubstr("delete the stream"));
    EXPECT_EQ(rpc::Reason(early),
              (rpc::ErrorReason{rpc::kStreamIncompatible,
                                {{"stream", stream[0]},
                                 {"field", "storage"},
                                 {"is", absl::StrCat("\"", stream[2], "\"")},
                                 {"wanted", absl::StrCat("\"", stream[3], "\"")}}}));
    EXPECT_TRUE(Logged("not ready: what is needed is set otherwise than it must be"));
    ASSERT_TRUE(jetstream.DeleteStream(stream[0]).ok());
  }
  health.Await("SERVING");
  EXPECT_EQ(GetStats(true), absl::NotFoundError("this is the role"));
  EXPECT_EQ(Stop(), absl::OkStatus());
}

TEST_F(HostTest, WaitsForARoleThatMeetsAStreamThatIsSetOtherwise) {
  role_.next_open_ = base::WithMismatch(absl::FailedPreconditionError("otherwise"),
                                        {"MUSTER_local_out", "storage", "memory", "file"});
  Start();
  EXPECT_THAT(role_.AwaitEvents(2), ElementsAre("open", "open"));
  EXPECT_EQ(Stop(), absl::OkStatus());
}

TEST_F(HostTest, EndsWithTheErrorOfARoleThatCannotOpen) {
  role_.next_open_ = absl::FailedPreconditionError("somebody else has it");
  Start();
  EXPECT_THAT(Await().message(), HasSubstr("somebody else has it"));
  // Work that the role has begun nevertheless ends before the stores close.
  EXPECT_THAT(role_.AwaitEvents(3), ElementsAre("open", "drain 0", "close"));
}

TEST_F(HostTest, DrainsAndEndsWithTheErrorOfARoleThatCannotGoOn) {
  Start();
  role_.AwaitEvents(1);
  HealthWatch health(Connect());
  health.Await("SERVING");
  role_.fail_(absl::DataLossError("the report is damaged"));
  role_.fail_(absl::InternalError("and then some"));
  EXPECT_THAT(Await().message(), HasSubstr("the report is damaged"));
  EXPECT_THAT(role_.AwaitEvents(3), ElementsAre("open", "drain 30s", "close"));
}

// With stores of its own.
class EmbeddedHostTest : public HostTest {
 protected:
  EmbeddedHostTest() {
    options_.nats_url.clear();
    options_.data_dir = folder_ / "data";
    Start();
    role_.AwaitEvents(1);
  }
  ~EmbeddedHostTest() override {
    Stop().IgnoreError();
    host_.reset();  // before its folder goes
  }

  // `write` finds no room, as on a full disk: its store stays so until it is opened again.
  void ExpectToEndAfter(const std::function<absl::Status()>& write) {
    struct rlimit limit = {};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit small = limit;
    small.rlim_cur = 1;
    const auto before = signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    EXPECT_FALSE(write().ok());
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, before);
    EXPECT_THAT(Await().message(), HasSubstr("must be opened again"));
    EXPECT_THAT(role_.AwaitEvents(3), ElementsAre("open", "drain 30s", "close"));
  }

  const os::TempDir folder_;
};

TEST_F(EmbeddedHostTest, EndsWhereItsQueuesTakeNothingMore) {
  ExpectToEndAfter([&] { return role_.stores_.queues->CreateQueue({"local", "orders"}, {}); });
}

TEST_F(EmbeddedHostTest, EndsWhereItsRecordsTakeNothingMore) {
  ExpectToEndAfter(
      [&] { return role_.stores_.sync->TryWrite("ids/batch", "1", sync::kAbsent).status(); });
}

TEST_F(EmbeddedHostTest, EndsWhereItsStreamsTakeNothingMore) {
  ExpectToEndAfter([&] { return role_.stores_.streams->Create("homes", {}); });
}

TEST_F(HostTest, EndsAtOnceWhereWaitingIsOfNoUse) {
  options_.nats_url = "redis:localhost";
  Start();
  EXPECT_TRUE(absl::IsInvalidArgument(Await()));
}

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

int Serve(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "muster-processor");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int threads = 0;
  return RunService(
      static_cast<int>(argv.size()), argv.data(),
      {.role = kProcessor,
       .about = "Works.",
       .add_options = [&](CLI::App* app) { app->add_option("--threads", threads); },
       .make_role = [](const HostOptions&, base::Clock*) -> absl::StatusOr<std::unique_ptr<Role>> {
         return absl::NotFoundError("there is no such role");
       }});
}

TEST(RunService, ShowsWhatItCanBeTold) {
  CaptureStdout();
  EXPECT_EQ(Serve({"--help"}), kDone);
  EXPECT_THAT(GetCapturedStdout(),
              AllOf(HasSubstr("Works."), HasSubstr("--nats"), HasSubstr("--threads")));
}

TEST(RunService, SaysWhichVersionItIs) {
  CaptureStdout();
  EXPECT_EQ(Serve({"--version"}), kDone);
  EXPECT_THAT(GetCapturedStdout(), HasSubstr("."));
}

TEST(RunService, AnswersUsageWhenItIsMisused) {
  CaptureStderr();
  EXPECT_EQ(Serve({"--lease", "soon"}), kMisused);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("--lease"));
}

// CLI11 reads 010 as eight: a service began with eight threads where its user wanted ten.
TEST(RunService, TakesNoNumberForAnother) {
  CaptureStderr();
  EXPECT_EQ(Serve({"--threads", "010"}), kMisused);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("--threads: 010 begins with a zero"));
  CaptureStderr();
  EXPECT_EQ(Serve({"--replicas", "03"}), kMisused);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("--replicas: 03 begins with a zero"));
}

TEST(RunService, AnswersErrorWhenItCannotServe) {
  CaptureStderr();
  EXPECT_EQ(Serve({}), kFailed);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("muster-processor: there is no such role"));
}

}  // namespace

}  // namespace muster::host
