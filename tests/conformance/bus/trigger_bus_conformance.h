// SPDX-License-Identifier: Apache-2.0

// The conformance tests of every TriggerBus. The test of an engine includes this file, and in
// namespace bus::conformance says
//
//   INSTANTIATE_TEST_SUITE_P(Local, TriggerBusConformance,
//                            ::testing::Values(TriggerBusEngine(&OpenLocal)));
//
// The suite waits for the events that it sent. Its checks of events that must not come also hold
// for a bus that delivers late.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/bus/trigger_bus.h"

namespace muster::bus::conformance {

// The bus under test.
struct TriggerBusEngine {
  // Opens a bus with no other users.
  using Opener = std::function<std::unique_ptr<TriggerBus>()>;

  // Defined in the .cc, so that every user of a TriggerBusEngine links the tests.
  explicit TriggerBusEngine(Opener opener);

  Opener open;
};

// Keeps the queue names of the work-detected events that it receives, in order. Thread-safe.
class TriggerRecorder {
 public:
  TriggerBus::Subscriber Subscriber();

  // Blocks until an event for `queue` has come.
  void Await(absl::string_view queue);
  std::vector<std::string> heard() const;

 private:
  bool HeardLocked(absl::string_view queue) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable base::Mutex mu_;
  base::CondVar changed_;
  std::vector<std::string> heard_ ABSL_GUARDED_BY(mu_);
};

class TriggerBusConformance : public ::testing::TestWithParam<TriggerBusEngine> {
 protected:
  void SetUp() override;

  std::unique_ptr<TriggerBus::Subscription> Subscribe(TriggerBus::Subscriber subscriber);
  void Publish(absl::string_view queue);

  std::unique_ptr<TriggerBus> bus_;
};

}  // namespace muster::bus::conformance
