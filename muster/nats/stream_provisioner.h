// SPDX-License-Identifier: Apache-2.0

// StreamProvisioner: makes a stream that a process needs, and makes it again when the server has
// lost it.
//
// A new stream is empty, so a first report that the stream is missing is not believed: a server
// that has just come back, or another server after a reconnection, may not know its streams yet.
// The stream is made when it is still missing a while later. If it exists after all, making it
// changes nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/nats/jetstream.h"
#include "nlohmann/json.hpp"

namespace muster::nats {

// Thread-safe.
class StreamProvisioner {
 public:
  // `config`: as for JetStream::EnsureStream. Neither pointer is owned.
  StreamProvisioner(JetStream* jetstream, nlohmann::json config, base::Clock* clock);

  // As JetStream::EnsureStream.
  absl::Status Ensure() ABSL_LOCKS_EXCLUDED(mu_);

  // To be called after an error that the stream does not exist, or that no stream listens to its
  // subjects. OK: the stream exists now, maybe empty; continue. Unavailable: it does not; try
  // again. Otherwise as Ensure.
  absl::Status OnMissing() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Whether it was seen to be missing a while ago already, and not too long ago.
  bool NoteMissing() ABSL_LOCKS_EXCLUDED(mu_);

  JetStream* const jetstream_;  // not owned
  const nlohmann::json config_;
  const std::string name_;
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  std::optional<absl::Duration> missing_since_ ABSL_GUARDED_BY(mu_);  // monotonic
  absl::Duration seen_missing_ ABSL_GUARDED_BY(mu_);                  // last
};

// Calls `write` again while nobody listens, for less than `patience`: a stream that another process
// is making exists for a moment before it listens to its subjects. Returns what the last call did.
absl::Status WriteOnceHeard(const std::function<absl::Status()>& write,
                            absl::Duration patience = absl::Seconds(2));

}  // namespace muster::nats
