// SPDX-License-Identifier: Apache-2.0
#include "muster/base/proto_time.h"

#include <algorithm>

namespace muster::base {
namespace {

// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, of which protobuf's documentation speaks.
constexpr int64_t kFirstSecond = -62135596800;
constexpr int64_t kLastSecond = 253402300799;
constexpr int64_t kMostSeconds = 315576000000;

}  // namespace

google::protobuf::Timestamp ToProto(absl::Time time) {
  const absl::Time kept =
      std::clamp(time, absl::FromUnixSeconds(kFirstSecond), absl::FromUnixSeconds(kLastSecond));
  google::protobuf::Timestamp proto;
  proto.set_seconds(absl::ToUnixSeconds(kept));  // rounds down, so that nanos are not negative
  proto.set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(kept - absl::FromUnixSeconds(proto.seconds()))));
  return proto;
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  const absl::Duration kept =
      std::clamp(duration, absl::Seconds(-kMostSeconds), absl::Seconds(kMostSeconds));
  google::protobuf::Duration proto;
  absl::Duration rest;
  proto.set_seconds(absl::IDivDuration(kept, absl::Seconds(1), &rest));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return proto;
}

absl::Time FromProto(const google::protobuf::Timestamp& proto) {
  return absl::FromUnixSeconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

absl::Duration FromProto(const google::protobuf::Duration& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

}  // namespace muster::base
