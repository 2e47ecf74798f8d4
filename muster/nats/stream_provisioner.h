// StreamProvisioner: makes a stream that a process cannot do without, and makes it again when the
// server has lost it.
//
// What is made anew is empty, so the first word of it is not believed: a server that has just come
// back, or another one that a connection was moved to, may not know yet what there is. The stream
// is made when it is still not there a while later. Where it is there after all, making it changes
// nothing.
#pragma once

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
  // `config` as of JetStream::EnsureStream. Neither pointer is owned.
  StreamProvisioner(JetStream* jetstream, nlohmann::json config, base::Clock* clock);

  // As JetStream::EnsureStream.
  absl::Status Ensure();

  // For whoever was told that the stream is not there, or that nobody listens to its subjects. OK:
  // now it is there, maybe empty; go on. Unavailable: it is not; try again. Otherwise as Ensure.
  absl::Status OnMissing();

 private:
  // Whether it was seen to be missing a while ago already, and not too long ago.
  bool NoteMissing();

  JetStream* const jetstream_;  // not owned
  const nlohmann::json config_;
  const std::string name_;
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  std::optional<absl::Duration> missing_since_ ABSL_GUARDED_BY(mu_);  // monotonic
  absl::Duration seen_missing_ ABSL_GUARDED_BY(mu_);                  // last
};

}  // namespace muster::nats
