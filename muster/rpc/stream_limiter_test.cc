// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/stream_limiter.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::rpc {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kMaxIdle = absl::Minutes(1);
constexpr absl::Duration kYieldsAfter = absl::Seconds(1);

class StreamLimiterTest : public ::testing::Test {
 protected:
  // One stream, and what it was ended with.
  struct Stream {
    absl::Status ended;
    std::unique_ptr<StreamLimiter::Place> place;
  };

  absl::Status Admit(Stream* stream) {
    auto place = limiter_.Admit([stream](const absl::Status& why) { stream->ended = why; });
    if (place.ok()) stream->place = *std::move(place);
    return place.status();
  }

  base::FakeClock clock_;
  StreamLimiter limiter_{"uploads", {2, kMaxIdle, kYieldsAfter}, &clock_};
};

TEST_F(StreamLimiterTest, RefusesAStreamWhileAllPlacesAreAtWork) {
  Stream first, second, third;
  ASSERT_TRUE(Admit(&first).ok());
  ASSERT_TRUE(Admit(&second).ok());
  clock_.Advance(absl::Hours(1));
  const absl::Status refused = Admit(&third);
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("uploads: all 2 places are taken"));
  second.place.reset();
  EXPECT_TRUE(Admit(&third).ok());
  EXPECT_TRUE(first.ended.ok()) << "it works, however long";
}

TEST_F(StreamLimiterTest, GivesThePlaceOfTheStreamThatWaitsLongestToANewOne) {
  Stream first, second, third, fourth;
  ASSERT_TRUE(Admit(&first).ok());
  ASSERT_TRUE(Admit(&second).ok());
  second.place->Waits();
  clock_.Advance(absl::Milliseconds(500));
  first.place->Waits();
  EXPECT_FALSE(Admit(&third).ok()) << "neither waits for long enough";
  clock_.Advance(absl::Milliseconds(500));
  EXPECT_TRUE(Admit(&third).ok());
  EXPECT_TRUE(absl::IsUnavailable(second.ended)) << second.ended;
  EXPECT_TRUE(first.ended.ok());
  second.place.reset();
  EXPECT_FALSE(Admit(&fourth).ok()) << "its place was given away already";
}

TEST_F(StreamLimiterTest, EndsAStreamWhoseClientDoesNothing) {
  Stream idle, busy;
  ASSERT_TRUE(Admit(&idle).ok());
  ASSERT_TRUE(Admit(&busy).ok());
  idle.place->Waits();
  busy.place->Waits();
  clock_.AwaitSleepers(1);
  clock_.Advance(kMaxIdle / 2);
  busy.place->Goes();
  busy.place->Waits();
  clock_.AwaitSleepers(1);
  clock_.Advance(kMaxIdle / 2);
  clock_.AwaitSleepers(1);
  EXPECT_TRUE(absl::IsUnavailable(idle.ended)) << idle.ended;
  EXPECT_THAT(std::string(idle.ended.message()), HasSubstr("nothing came for 1m"));
  EXPECT_TRUE(busy.ended.ok()) << busy.ended;
}

TEST_F(StreamLimiterTest, CountsAWaitAnewWhenItsServerHasDoneSomething) {
  Stream stream;
  ASSERT_TRUE(Admit(&stream).ok());
  stream.place->Waits();
  clock_.AwaitSleepers(1);
  clock_.Advance(kMaxIdle / 2);
  stream.place->Stir();
  clock_.AwaitSleepers(1);
  clock_.Advance(kMaxIdle / 2);
  clock_.AwaitSleepers(1);
  EXPECT_TRUE(stream.ended.ok()) << stream.ended;
  clock_.Advance(kMaxIdle / 2);
  clock_.AwaitSleepers(1);
  EXPECT_TRUE(absl::IsUnavailable(stream.ended)) << stream.ended;
}

}  // namespace
}  // namespace muster::rpc
