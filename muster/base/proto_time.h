// SPDX-License-Identifier: Apache-2.0

// Times in messages: google.protobuf.Timestamp and Duration, to nanoseconds.
#pragma once

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace muster::base {

// A time that no timestamp can hold, because it lies outside of the years 1 to 9999, becomes the
// nearest time that one can hold. Leave an infinite time unset instead.
google::protobuf::Timestamp ToProto(absl::Time time);
// Likewise: at most 10,000 years, positive or negative.
google::protobuf::Duration ToProto(absl::Duration duration);

// Any message becomes a time: contradictory fields do no harm.
absl::Time FromProto(const google::protobuf::Timestamp& proto);
absl::Duration FromProto(const google::protobuf::Duration& proto);

}  // namespace muster::base
