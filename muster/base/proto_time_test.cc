// SPDX-License-Identifier: Apache-2.0
#include "muster/base/proto_time.h"

#include <limits>

#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(ProtoTime, KeepsATimeToTheNanosecond) {
  const absl::Time time = absl::FromUnixNanos(1323435000123456789);
  EXPECT_EQ(FromProto(ToProto(time)), time);
  EXPECT_EQ(ToProto(time).nanos(), 123456789);
}

TEST(ProtoTime, CountsNanosecondsUpwardsBefore1970) {
  const google::protobuf::Timestamp proto = ToProto(absl::FromUnixMillis(-1500));
  EXPECT_EQ(proto.seconds(), -2);
  EXPECT_EQ(proto.nanos(), 500000000);
  EXPECT_EQ(FromProto(proto), absl::FromUnixMillis(-1500));
}

TEST(ProtoTime, KeepsADurationEitherWay) {
  for (const absl::Duration duration : {absl::Milliseconds(1500), absl::Milliseconds(-1500)}) {
    EXPECT_EQ(FromProto(ToProto(duration)), duration);
  }
  EXPECT_EQ(ToProto(absl::Milliseconds(-1500)).seconds(), -1);
  EXPECT_EQ(ToProto(absl::Milliseconds(-1500)).nanos(), -500000000);
}

TEST(ProtoTime, TakesTheNearestForWhatAMessageCannotSay) {
  EXPECT_EQ(FromProto(ToProto(absl::InfiniteFuture())), absl::FromUnixSeconds(253402300799));
  EXPECT_EQ(FromProto(ToProto(absl::InfinitePast())), absl::FromUnixSeconds(-62135596800));
  EXPECT_EQ(FromProto(ToProto(absl::InfiniteDuration())), absl::Seconds(315576000000));
  EXPECT_EQ(FromProto(ToProto(-absl::InfiniteDuration())), absl::Seconds(-315576000000));
}

TEST(ProtoTime, ReadsWhateverAMessageHolds) {
  google::protobuf::Timestamp time;
  time.set_seconds(std::numeric_limits<int64_t>::max());
  time.set_nanos(std::numeric_limits<int32_t>::min());
  EXPECT_GT(FromProto(time), absl::FromUnixSeconds(253402300799));
}

}  // namespace
}  // namespace muster::base
