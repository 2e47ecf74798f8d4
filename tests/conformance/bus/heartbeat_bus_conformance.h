// SPDX-License-Identifier: Apache-2.0

// The conformance tests of every HeartbeatBus. The test of an engine includes this file, and in
// namespace bus::conformance says
//
//   INSTANTIATE_TEST_SUITE_P(Local, HeartbeatBusConformance,
//                            ::testing::Values(HeartbeatBusEngine(&OpenLocal)));
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/bus/heartbeat_bus.h"

namespace muster::bus::conformance {

// The bus under test.
struct HeartbeatBusEngine {
  // Opens a bus with no other users.
  using Opener = std::function<std::unique_ptr<HeartbeatBus>()>;

  // Defined in the .cc, so that every user of a HeartbeatBusEngine links the tests.
  explicit HeartbeatBusEngine(Opener opener);

  Opener open;
};

// The heartbeat of a processor.
v1::Heartbeat From(absl::string_view instance);

// Keeps the heartbeats that it receives, in order. Thread-safe.
class HeartbeatRecorder {
 public:
  HeartbeatBus::Subscriber Subscriber();

  // Blocks until a heartbeat of `instance` has come; returns the first one.
  v1::Heartbeat Await(absl::string_view instance);
  std::vector<std::string> heard() const;

 private:
  mutable base::Mutex mu_;
  base::CondVar changed_;
  std::vector<v1::Heartbeat> heard_ ABSL_GUARDED_BY(mu_);
};

class HeartbeatBusConformance : public ::testing::TestWithParam<HeartbeatBusEngine> {
 protected:
  void SetUp() override;

  std::unique_ptr<HeartbeatBus::Subscription> Subscribe(HeartbeatBus::Subscriber subscriber);
  void Publish(const v1::Heartbeat& heartbeat);

  std::unique_ptr<HeartbeatBus> bus_;
};

}  // namespace muster::bus::conformance
