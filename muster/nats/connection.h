// SPDX-License-Identifier: Apache-2.0

// Connection: a connection to a NATS server, its options and bounds, and the messages on it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/fan_out.h"

namespace muster::nats {

// Interval of reconnection attempts: short enough after a restart of the server, long enough that
// many clients do not overload it.
inline constexpr absl::Duration kReconnectWait = absl::Milliseconds(250);
inline constexpr absl::Duration kReconnectJitter = absl::Milliseconds(100);
// A silent server is noticed after two of these.
inline constexpr absl::Duration kPingInterval = absl::Seconds(10);
// A connection is given up when the server accepts no data for this long; until then a publisher is
// blocked.
inline constexpr absl::Duration kWriteDeadline = absl::Seconds(2);
// While a caller waits for a confirmation it checks this often whether the connection still exists:
// nothing signals the waiting thread when it ends.
inline constexpr absl::Duration kLookWhetherConnected = absl::Milliseconds(50);
// Buffer for messages published without a connection; when it is full, publishing is refused.
inline constexpr int kMaxReconnectBufferBytes = 8 << 20;
// Limits of received messages that no handler has taken yet. A pull brings at most some dozens of
// messages for each task, so the limits are reached only when a handler hangs.
inline constexpr int kMaxPendingMessages = 1 << 20;
inline constexpr int kMaxPendingBytes = 512 << 20;

// Parts of a process that follow the changes of one connection: a few, and more would be a leak.
inline constexpr int kMaxFollowers = 64;

// A stream must be missing for this long before it is made anew: a restarted server, or another
// server after a reconnection, knows its streams by then.
inline constexpr absl::Duration kGoneFor = absl::Seconds(2);
// The longest gap between two such observations; idle processors look every half minute.
inline constexpr absl::Duration kMaxBetweenSightings = absl::Minutes(1);

// The messages on a NATS connection.

struct Header {
  std::string name;
  std::string value;
};

// A message to send. `data` must stay valid during the call that sends it.
struct Outgoing {
  std::string subject;
  std::vector<Header> headers = {};
  absl::string_view data = "";
  std::string reply = {};  // of a publish: the subject for answers, which the caller has subscribed
};

// Statuses in messages from the server itself; they resemble those of HTTP.
enum ServerStatus {
  kNoMessages = 404,
  kRequestTimeout = 408,
  kConflict = 409,
  kNoResponders = 503,
};

struct Incoming {
  std::string subject;
  std::string reply;  // subject for the answer; "" when none is wanted
  std::string data;
  int status = 0;           // a ServerStatus in messages from the server itself, else 0
  std::string description;  // text of the status
};

// Connection: one connection to a NATS server, or to a cluster of them.
//
// It reconnects by itself, unless the server refuses its credentials twice: then nats.c closes it
// for good, and an error is logged. It shows for ever the certificate, and trusts the authorities,
// that it has read when it was opened. Without a connection, calls return Unavailable within their
// timeout. No nats.c type appears outside this folder.

struct ConnectionOptions {
  std::string name = "muster";        // as the server shows it
  std::string credentials_file = "";  // none
  std::string ca_file = "";  // the machine's; set, or a tls:// URL: the connection is encrypted
  std::string certificate_file = "";  // with key_file, for servers that ask for one
  std::string key_file = "";
  absl::Duration connect_timeout = absl::Seconds(2);
  // True: data is with the kernel when the call that sends it returns. For small messages that a
  // caller waits for, or that must survive this process. False: nats.c gathers messages for up to a
  // millisecond, which is better for many of them.
  bool prompt = false;
  // Called each time that the open connection is lost (false) or is back (true), one call at a
  // time, on a thread of its own; be quick. Not called when the connection is closed on purpose.
  std::function<void(bool connected)> on_change = nullptr;
  // Only a new connection may succeed: the server has refused the credentials of this one twice,
  // after it had accepted them before, so that nats.c has given it up for good; or it is lost for
  // `patience_when_renewed`, and its certificate, key or CA file was changed since it was opened.
  // Called once, on a thread of its own, with which of both it is, for people.
  std::function<void(const absl::Status& why)> on_refused = nullptr;
  absl::Duration patience_when_renewed = absl::Seconds(30);
};

// Each connection uses its own subject prefix for replies. Thread-safe.
class Connection {
 public:
  // Called for each message on a thread of its own, one call at a time; be quick.
  using MessageHandler = std::function<void(const Incoming&)>;

  // Ends when it is destroyed. When the destructor returns, the handler is not running and never
  // runs again; so do not destroy it from within the handler.
  class Subscription {
   public:
    virtual ~Subscription() = default;

    // Ends it at the server, and returns when the handler has had all that the server had sent
    // before, or after `timeout`. The object is still to be destroyed.
    virtual void Drain(absl::Duration timeout) = 0;
  };

  // A follower of changes (FollowChanges); ends as a subscription does.
  class Following {
   public:
    virtual ~Following() = default;
  };

  // `url`: "nats://host:4222", or several separated by commas. Unavailable: no server answers
  // there, or server and process refuse each other; the message names the reason. InvalidArgument:
  // an option is invalid, such as a file that does not exist.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& url,
                                                          const ConnectionOptions& options);
  virtual ~Connection() = default;

  // OK says that the message was sent, or waits in a bounded buffer for a connection. Unavailable:
  // there is no connection, and that buffer is full.
  virtual absl::Status Publish(const Outgoing& message) = 0;

  // For messages that are useful only at once: OK says that the server has the message. Publish
  // alone lets nats.c gather messages for up to a millisecond, and keep them while there is no
  // connection. Unavailable: there is no connection, or the server has not confirmed within
  // `timeout`.
  absl::Status PublishNow(const Outgoing& message, absl::Duration timeout);

  // Returns when the server has processed all that was sent before: messages are on their way to
  // their subscribers, and a new subscription receives everything published from now on.
  // Unavailable: not within `timeout`.
  virtual absl::Status Flush(absl::Duration timeout) = 0;

  // Sends all of `requests` at once and waits for one reply to each, in order. A request is
  // Unavailable if no reply comes within `timeout`, or if no subscriber listens. The outer status
  // is Unavailable when some of them may have been sent; after any other error none was.
  virtual absl::StatusOr<std::vector<absl::StatusOr<Incoming>>> RequestAll(
      absl::Span<const Outgoing> requests, absl::Duration timeout) = 0;
  absl::StatusOr<Incoming> Request(const Outgoing& request, absl::Duration timeout);

  // Sends `request` and passes each reply to `take`, on the calling thread, until `take` returns
  // false. Unavailable as for RequestAll.
  virtual absl::Status RequestMany(const Outgoing& request, absl::Duration timeout,
                                   absl::FunctionRef<bool(Incoming reply)> take) = 0;

  virtual absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(const std::string& subject,
                                                                  MessageHandler handler) = 0;

  // Calls `call` whenever the connection is lost (false), or is back and the server knows the
  // subscriptions again (true); as ConnectionOptions::on_change. ResourceExhausted: kMaxFollowers.
  virtual absl::StatusOr<std::unique_ptr<Following>> FollowChanges(
      std::function<void(bool connected)> call);

  // For a process that is about to end: requests wait for `patience` from now at most for a server
  // that is away, all together, and then are Unavailable at once until the connection is back.
  // Those that are under way keep their timeouts.
  virtual void LimitPatience(absl::Duration /*patience*/) {}

  virtual bool connected() const = 0;
  // Tells one connection to a server from the next: it grows before anything is sent or received
  // over the new one, and once the server knows the subscriptions. Tries that fail count, too.
  virtual int64_t reconnects() const = 0;
  // How often the connection was lost and is back.
  virtual int64_t times_back() const { return 0; }
  // Errors that the client library has reported since the connection was opened.
  virtual int64_t errors() const { return 0; }
  // Requests that wait for an answer now.
  virtual int64_t requests_in_flight() const { return 0; }
  bool prompt() const { return prompt_; }
  // Maximum bytes of a message, headers included.
  virtual int64_t max_payload() const = 0;

 protected:
  explicit Connection(bool prompt) : prompt_(prompt) {}

  // Calls all followers, one after the other.
  void TellFollowers(bool connected);

 private:
  const bool prompt_;
  base::FanOut<bool, Following> followers_{kMaxFollowers};
};

// Returns "nats://user:password@host" without user and password, for logs and messages; also where
// the scheme is missing, or misspelt.
std::string WithoutSecrets(absl::string_view urls);

}  // namespace muster::nats
