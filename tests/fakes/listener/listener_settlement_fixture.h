// What the tests of settlements add to listener_fixture.h: a queue that its holders die of.
#pragma once

#include <vector>

#include "tests/fakes/listener/listener_fixture.h"

namespace muster::listener {

class ListenerSettlementTest : public ListenerTest {
 protected:
  const queue::QueueId& in() { return partitions_[0]; }

  // The life of a holder that receives everything, begins, and dies.
  void ReceiveBeginAndDie() {
    const auto messages = *store_.Receive(in(), {32, absl::Seconds(30)});
    for (const queue::Message& message : messages) {
      ASSERT_TRUE(store_.BeginAttempt(in(), {message.receipt}).ok());
    }
    store_.BreakLeases(in());
  }

  std::vector<queue::PoisonMessage> Poison() { return *store_.ListPoison(in(), "", 100); }
};

}  // namespace muster::listener
