// SPDX-License-Identifier: Apache-2.0
#include "muster/bus/trigger_bus.h"

#include <variant>

#include "gtest/gtest.h"

namespace muster::bus {
namespace {

TEST(WorkDetectedTest, CarriesWhoPutHowMuchWhere) {
  const InterRoleCommunicationEvent event = WorkDetected("initiator-1", "acme", "retail-in", 64);
  EXPECT_EQ(event.from, "initiator-1");
  const auto& work = std::get<CloudQueueWorkDetectedTriggerEvent>(event.payload);
  EXPECT_EQ(work.storage_account, "acme");
  EXPECT_EQ(work.queue_name, "retail-in");
  EXPECT_EQ(work.messages, 64);
}

TEST(WorkDetectedTest, IsForItsOwnQueueOnly) {
  const InterRoleCommunicationEvent event = WorkDetected("initiator-1", "acme", "retail-in", 64);
  EXPECT_TRUE(IsFor(event, "acme", "retail-in"));
  EXPECT_FALSE(IsFor(event, "acme", "retail-out"));
  EXPECT_FALSE(IsFor(event, "other", "retail-in"));
  EXPECT_FALSE(IsFor(event, "acme", "retail"));
}

}  // namespace
}  // namespace muster::bus
