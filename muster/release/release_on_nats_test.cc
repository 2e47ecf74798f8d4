// SPDX-License-Identifier: Apache-2.0

// Releases over a real NATS server: with permissions, restarts, and processes of their own.
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/bus/nats/nats_buses.h"
#include "muster/nats/connection.h"
#include "muster/release/combined_release.h"
#include "muster/release/listening_release.h"
#include "muster/sync/jetstream/jetstream_sync_store.h"
#include "tests/fakes/base/killable_process.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::release {
namespace {

using base::testing::KillableProcess;
using base::testing::RegisteredProcess;
using base::testing::Send;

constexpr int kProcesses = 20;
constexpr int kThreads = 10;

// A process of the mesh, over one connection.
struct Process {
  explicit Process(const std::string& url)
      : connection(nats::Connection::Open(url, {}).value()),
        store(sync::jetstream::JetStreamSyncStore::Open(connection.get(),
                                                        {.timeout = absl::Milliseconds(500)})
                  .value()),
        bus(connection.get()),
        releases(store.get(), &bus, "initiator-1", base::RealClock()) {}

  std::unique_ptr<CombinedRelease> Open(absl::Duration safety_interval) {
    return CombinedRelease::Open("go", store.get(), &bus, base::RealClock(),
                                 {.safety_interval = safety_interval})
        .value();
  }
  // Answers the epoch that a wait finds armed, once it has looked.
  static int64_t AwaitParked(const CombinedRelease& release) {
    while (release.epoch() == 0) base::LetOthersRun();
    return release.epoch();
  }

  const std::unique_ptr<nats::Connection> connection;
  const std::unique_ptr<sync::jetstream::JetStreamSyncStore> store;
  bus::nats::NatsTriggerBus bus;
  Releases releases;
};

// The TCP connections of this process.
int Connections() {
  int connections = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_storage peer{};
    socklen_t bytes = sizeof(peer);
    const bool is_connected = getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) == 0;
    connections += is_connected && peer.ss_family == AF_INET;
  }
  return connections;
}

// Parks threads that each say that they go.
const RegisteredProcess parked_process("parked", [](const std::string& url) {
  const int inherited = Connections();  // of the test
  Process process(url);
  // No safety check comes to its help within this test.
  const auto release = process.Open(absl::Hours(1));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const auto went = release->Wait({});
      Send(went.ok() ? absl::StrCat("left ", went->released_epoch) : went.status().ToString());
    });
  }
  Process::AwaitParked(*release);
  Send(absl::StrCat("parked with ", Connections() - inherited));
  for (std::thread& thread : threads) thread.join();
});

class ReleaseOnNatsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ReleaseOnNatsTest, LetsTwoHundredThreadsOfTwentyProcessesGo) {
  const nats::testing::NatsServer server(GetParam());
  Process admin(server.url());
  std::vector<std::unique_ptr<KillableProcess>> processes;
  for (int i = 0; i < kProcesses; ++i) {
    processes.push_back(std::make_unique<KillableProcess>("parked", server.url()));
  }
  for (auto& process : processes) EXPECT_EQ(process->Receive(), "parked with 1");
  ASSERT_TRUE(admin.releases.Release("go").ok());
  for (auto& process : processes) {
    for (int i = 0; i < kThreads; ++i) EXPECT_EQ(process->Receive(), "left 1");
  }
  KillableProcess late("parked", server.url());
  std::vector<std::string> lines;
  for (int i = 0; i < kThreads + 1; ++i) lines.push_back(late.Receive().value_or("it is dead"));
  EXPECT_THAT(lines, ::testing::Contains("left 1").Times(kThreads));
}

class Worker {
 public:
  Worker(Process* process, absl::Duration safety_interval)
      : release_(process->Open(safety_interval)),
        thread_([this](const std::stop_token& stop) { went_ = release_->Wait(stop); }) {
    Process::AwaitParked(*release_);
  }
  absl::StatusOr<ReleaseState> Join() {
    thread_.join();
    return went_;
  }

 private:
  const std::unique_ptr<CombinedRelease> release_;
  absl::StatusOr<ReleaseState> went_;
  std::jthread thread_;
};

// While the worker is cut off, it is released and armed again, so that it can learn of neither by
// the multicast.
TEST_P(ReleaseOnNatsTest, AWorkerThatWasCutOffGoesOnceItIsBack) {
  nats::testing::NatsServer server(GetParam());
  Process cut_off(server.url());
  Worker worker(&cut_off, absl::Milliseconds(200));
  server.Kill();
  server.Restart();
  {
    Process admin(server.url());  // connects before the worker tries to again
    ASSERT_TRUE(admin.releases.Release("go").ok());
    ASSERT_TRUE(admin.releases.Arm("go").ok());
  }
  const auto went = worker.Join();
  ASSERT_TRUE(went.ok()) << went.status();
  EXPECT_EQ(went->released_epoch, 1);
}

TEST_P(ReleaseOnNatsTest, ARestartedServerStillLetsWorkersGo) {
  nats::testing::NatsServer server(GetParam());
  Process process(server.url()), admin(server.url());
  Worker worker(&process, absl::Milliseconds(200));
  server.Kill();
  EXPECT_TRUE(absl::IsUnavailable(admin.releases.Release("go", 1).status()));
  server.Restart();
  while (!admin.releases.Release("go", 1).ok()) {
  }
  EXPECT_TRUE(worker.Join().ok());
}

// Who may publish on the subjects of releases, and write their record, may release; no other may.
constexpr char kUsers[] = R"(
authorization { users: [
  { user: admin, password: secret }
  { user: worker, password: secret, permissions: { publish: {
      deny: ["muster.release.*", "$KV.muster.releases"] } } }
  { user: deaf, password: secret, permissions: { subscribe: { deny: "muster.release.*" } } }
] }
)";

std::string As(const std::string& user, const std::string& url) {
  return absl::StrReplaceAll(url, {{"nats://", absl::StrCat("nats://", user, ":secret@")}});
}

TEST_P(ReleaseOnNatsTest, AnUnauthorisedPublisherReleasesNobody) {
  const nats::testing::NatsServer server(GetParam(), kUsers);
  Process admin(As("admin", server.url())), stranger(As("worker", server.url()));
  const auto listening = ListeningRelease::Open(&admin.bus, "go").value();
  const auto marker = ListeningRelease::Open(&admin.bus, "marker").value();
  // OK says that the server has the event, not that it passes it on.
  ASSERT_TRUE(stranger.bus.Publish({"stranger", bus::ReleasedEvent{"go", 1}}).ok());
  ASSERT_TRUE(admin.bus.Publish({"admin", bus::ReleasedEvent{"marker", 1}}).ok());
  ASSERT_TRUE(marker->Wait({}).ok()) << "what was sent before has arrived, too";
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_TRUE(absl::IsCancelled(listening->Wait(stopped.get_token())));

  const auto combined = admin.Open(absl::Hours(1));
  EXPECT_FALSE(stranger.releases.Release("go").ok()) << "the record is not its to write";
  EXPECT_FALSE(admin.releases.Get("go")->is_open());
  ASSERT_TRUE(admin.releases.Release("go").ok());
  EXPECT_TRUE(listening->Wait({}).ok());
  EXPECT_TRUE(combined->Wait({}).ok());
}

TEST_P(ReleaseOnNatsTest, WhomNoMulticastReachesGoesWithTheSafetyCheck) {
  const nats::testing::NatsServer server(GetParam(), kUsers);
  Process admin(As("admin", server.url())), deaf(As("deaf", server.url()));
  Worker worker(&deaf, absl::Milliseconds(100));
  ASSERT_TRUE(admin.releases.Release("go").ok());
  EXPECT_TRUE(worker.Join().ok());
}

INSTANTIATE_TEST_SUITE_P(Servers, ReleaseOnNatsTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

}  // namespace
}  // namespace muster::release
