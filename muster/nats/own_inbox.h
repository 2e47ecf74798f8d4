// ReplyInbox: a subject of its own for the replies to one request at a time. JetStream sends what
// is pulled under the subject that it was published to, so that only the subscription tells whose
// it is.
#pragma once

#include <nats/nats.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/nats/message.h"

namespace muster::nats {

// Not thread-safe.
class ReplyInbox {
 public:
  // `connection` is not owned.
  static absl::StatusOr<std::unique_ptr<ReplyInbox>> Open(natsConnection* connection);
  ~ReplyInbox() { natsSubscription_Destroy(subscription_); }
  ReplyInbox(const ReplyInbox&) = delete;
  ReplyInbox& operator=(const ReplyInbox&) = delete;

  const std::string& subject() const { return subject_; }

  // The next reply; its status is kNoResponders where nobody listens. Unavailable: none within
  // `timeout`.
  absl::StatusOr<Incoming> Next(absl::Duration timeout);

 private:
  ReplyInbox();

  const std::string subject_;
  natsSubscription* subscription_ = nullptr;  // owned
};

}  // namespace muster::nats
