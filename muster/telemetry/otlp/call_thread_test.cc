// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/otlp/call_thread.h"

#include <future>
#include <memory>
#include <optional>

#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::telemetry {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(3);

class CallThreadTest : public testing::Test {
 protected:
  base::FakeClock clock_;
  CallThread calls_{&clock_};
};

TEST_F(CallThreadTest, AnswersWhatTheCallDoes) {
  EXPECT_EQ(calls_.Run([] { return true; }), true);
  EXPECT_EQ(calls_.Run([] { return false; }), false);
  calls_.Close(kPatience);
  EXPECT_EQ(calls_.Run([] { return true; }), true) << "there is time";
}

// As a collector that hangs, with a time-out of an hour.
TEST(CallThreadEndTest, LeavesACallBehindThatHangsWhenItsPatienceIsOver) {
  base::FakeClock clock;
  auto calls = std::make_unique<CallThread>(&clock);
  std::promise<void> begun, gate, ended;
  std::future<std::optional<bool>> answer = std::async(std::launch::async, [&] {
    return calls->Run([&] {
      begun.set_value();
      gate.get_future().wait();
      ended.set_value();
      return true;
    });
  });
  begun.get_future().wait();
  calls->Close(kPatience);
  calls->Close(10 * kPatience);  // the first time counts
  clock.Advance(kPatience);
  EXPECT_EQ(answer.get(), std::nullopt);
  EXPECT_EQ(calls->Run([] { return true; }), std::nullopt) << "its thread is busy";
  calls.reset();
  gate.set_value();
  ended.get_future().wait();
}

}  // namespace
}  // namespace muster::telemetry
