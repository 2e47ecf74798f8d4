// The bounds of a listener's options.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/listener/listener.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

inline constexpr int kMaxPartitions = 1024;    // a look visits each of them
inline constexpr int kMaxDequeueTasks = 1000;  // each is a thread
inline constexpr int kMaxUnsettledMessages = 1 << 20;
// Below this the renewals of one lease would outweigh the work.
inline constexpr absl::Duration kMinVisibility = absl::Milliseconds(100);
inline constexpr int kMaxAttemptsLimit = 1000;

// InvalidArgument, naming the option.
absl::Status ValidateListenerOptions(const ListenerOptions& options, const queue::Traits& traits);
absl::Status ValidateIdleIntervals(absl::Duration minimum, absl::Duration maximum);
absl::Status ValidateBatchSize(int messages, const queue::Traits& traits);
absl::Status ValidateMaxDequeueTasks(int tasks);

}  // namespace muster::listener
