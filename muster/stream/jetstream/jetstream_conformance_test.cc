// SPDX-License-Identifier: Apache-2.0

// The conformance suite, on each server that NatsServer::Programs names, with and without atomic
// appends.
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/nats/connection.h"
#include "muster/stream/jetstream/jetstream_event_stream_store.h"
#include "tests/conformance/stream/event_stream_conformance.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::stream::conformance {
namespace {

class ServerHome final : public StoreHome {
 public:
  ServerHome(const std::string& program, bool atomic_appends)
      : server_(program), atomic_appends_(atomic_appends) {}

  // Kills and restarts the server, then opens the store.
  std::unique_ptr<EventStreamStore> Open() override {
    server_.Restart();
    connection_ = nats::Connection::Open(server_.url(), {}).value();
    auto store = stream::jetstream::JetStreamEventStreamStore::Open(
        connection_.get(), {.atomic_appends = atomic_appends_});
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  // The server's time is real time.
  void Advance(absl::Duration by) override { absl::SleepFor(by); }

 private:
  nats::testing::NatsServer server_;
  const bool atomic_appends_;
  std::unique_ptr<nats::Connection> connection_;
};

std::vector<HomeMaker> Homes() {
  std::vector<HomeMaker> homes;
  for (const std::string& program : nats::testing::NatsServer::Programs()) {
    for (const bool atomic_appends : {false, true}) {
      homes.push_back([=] { return std::make_unique<ServerHome>(program, atomic_appends); });
    }
  }
  return homes;
}

INSTANTIATE_TEST_SUITE_P(JetStream, EventStreamConformance, ::testing::ValuesIn(Homes()));

}  // namespace
}  // namespace muster::stream::conformance
