// SPDX-License-Identifier: Apache-2.0

// The conformance suite, on each server that NatsServer::Programs names. The server's time is real
// time, so it runs thirty times as fast here: the suite's half minute is a second.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/nats/connection.h"
#include "muster/queue/jetstream/jetstream_queue_store.h"
#include "muster/queue/limits.h"
#include "muster/queue/queue_store.h"
#include "muster/queue/store_decorators.h"
#include "tests/conformance/queue/queue_conformance.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::queue::conformance {
namespace {

constexpr int kSpeed = 30;
constexpr absl::Duration kSuiteLease = absl::Seconds(30);
constexpr absl::Duration kLease = absl::Seconds(1);
// The server's timers may be this much late or early.
constexpr absl::Duration kSlack = absl::Milliseconds(300);

// Shortens the waits that callers ask for by the same factor.
class HurriedStore final : public InterceptedStore {
 public:
  using InterceptedStore::InterceptedStore;

  absl::Status CreateQueue(const QueueId& queue, const Metadata& metadata) override {
    return InterceptedStore::CreateQueue(queue, Hurried(metadata));
  }
  absl::Status SetMetadata(const QueueId& queue, const Metadata& metadata) override {
    return InterceptedStore::SetMetadata(queue, Hurried(metadata));
  }

  absl::StatusOr<std::vector<absl::StatusOr<UpdateResult>>> Update(
      const QueueId& queue, absl::Span<const UpdateRequest> requests) override {
    std::vector<UpdateRequest> hurried(requests.begin(), requests.end());
    for (UpdateRequest& request : hurried) {
      if (request.visibility <= kMaxVisibility) request.visibility /= kSpeed;
    }
    return InterceptedStore::Update(queue, hurried);
  }

 private:
  static Metadata Hurried(const Metadata& metadata) {
    const std::optional<absl::Duration> visibility = VisibilityOf(metadata);
    return visibility.has_value() ? WithVisibility(metadata, *visibility / kSpeed) : metadata;
  }
};

class JetStreamHarness final : public EngineHarness {
 public:
  JetStreamHarness(const std::string& program, Survives ack_survives)
      : server_(program), ack_survives_(ack_survives) {}

  QueueStore* Start(base::Clock*) override { return Restart(); }

  QueueStore* Restart() override {
    hurried_.reset();
    store_.reset();
    connection_ = nats::Connection::Open(server_.url(), {}).value();
    prompt_ = nats::Connection::Open(server_.url(), {.prompt = true}).value();
    queue::jetstream::Options options;
    options.prompt = prompt_.get();
    options.settings.lease = kLease;
    options.ack_survives = ack_survives_;
    auto store = queue::jetstream::OpenJetStreamQueues(connection_.get(), options);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    hurried_ = std::make_unique<HurriedStore>(store_.get());
    return hurried_.get();
  }

  QueueStore* RestartServer() override {
    server_.Stop();
    server_.Restart();
    return Restart();
  }

  // A lease that should hold still holds; a lease that should have lapsed has lapsed.
  void Advance(base::FakeClock* clock, absl::Duration by) override {
    clock->Advance(by);
    const bool lapses = by >= kSuiteLease || by <= absl::Seconds(5);
    absl::SleepFor(by / kSpeed + (lapses ? kSlack : -kSlack));
  }

 private:
  nats::testing::NatsServer server_;
  const Survives ack_survives_;
  std::unique_ptr<nats::Connection> connection_;
  std::unique_ptr<nats::Connection> prompt_;
  std::unique_ptr<QueueStore> store_;
  std::unique_ptr<QueueStore> hurried_;
};

std::vector<EngineFactory> Factories() {
  std::vector<EngineFactory> factories;
  for (const std::string& program : nats::testing::NatsServer::Programs()) {
    for (const Survives survives : {Survives::kProcess, Survives::kPower}) {
      factories.push_back([=] { return std::make_unique<JetStreamHarness>(program, survives); });
    }
  }
  return factories;
}

INSTANTIATE_TEST_SUITE_P(JetStream, QueueConformanceTest, ::testing::ValuesIn(Factories()));

}  // namespace
}  // namespace muster::queue::conformance
