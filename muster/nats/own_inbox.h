// OwnInbox: a subject of its own for the replies to one request at a time. JetStream sends what is
// pulled under the subject that it was published to, so that only the subscription tells whose it
// is.
#pragma once

#include <nats/nats.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/nats/message.h"

namespace muster::nats {

// Not thread-safe.
class OwnInbox {
 public:
  // `connection` is not owned.
  static absl::StatusOr<std::unique_ptr<OwnInbox>> Open(natsConnection* connection);
  ~OwnInbox() { natsSubscription_Destroy(subscription_); }
  OwnInbox(const OwnInbox&) = delete;
  OwnInbox& operator=(const OwnInbox&) = delete;

  const std::string& subject() const { return subject_; }

  // The next reply; its status is kNoResponders where nobody listens. Unavailable: none within
  // `timeout`.
  absl::StatusOr<Incoming> Next(absl::Duration timeout);

 private:
  OwnInbox();

  const std::string subject_;
  natsSubscription* subscription_ = nullptr;  // owned
};

}  // namespace muster::nats
