// How an event travels over NATS: a muster.v1.InterRoleCommunicationEvent on the subject
//
//   muster.trigger.<account>.<queue>      work was put into the queue
//   muster.event.<kind>                   anything else: job_changed, batch_counted,
//   batch_cancelled
//
// The payload alone says what the event is; the subject is there for servers to filter by, and to
// let an account only hear its own. Account and queue are written as tokens (nats/subject.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/bus/trigger_bus.h"

namespace muster::bus::nats {

// What the subjects of all events match.
inline constexpr const char* kEventSubjects[] = {"muster.trigger.>", "muster.event.*"};

std::string SubjectOf(const bus::InterRoleCommunicationEvent& event);
std::string EncodeEvent(const bus::InterRoleCommunicationEvent& event);

// InvalidArgument: no event, or one without a payload that we know.
absl::StatusOr<bus::InterRoleCommunicationEvent> DecodeEvent(absl::string_view bytes);

}  // namespace muster::bus::nats
