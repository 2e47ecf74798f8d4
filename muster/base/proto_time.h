// Times in messages: google.protobuf.Timestamp and Duration, to nanoseconds.
#pragma once

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace muster::base {

// What no timestamp can say, because it lies outside of the years 1 to 9999, becomes the nearest
// that one can. An infinite time is better left unset.
google::protobuf::Timestamp ToProto(absl::Time time);
// Likewise: at most 10,000 years, either way.
google::protobuf::Duration ToProto(absl::Duration duration);

// Whatever a message holds becomes a time: fields that contradict each other do no harm.
absl::Time FromProto(const google::protobuf::Timestamp& proto);
absl::Duration FromProto(const google::protobuf::Duration& proto);

}  // namespace muster::base
