// The bounds of a NATS connection, each with its reason.
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

namespace muster::nats {

// A lost server is looked for so often: soon enough for a restart, seldom enough for a herd.
inline constexpr absl::Duration kReconnectWait = absl::Milliseconds(250);
inline constexpr absl::Duration kReconnectJitter = absl::Milliseconds(100);
// A server that has gone silent is noticed after two of these.
inline constexpr absl::Duration kPingInterval = absl::Seconds(10);
// A server that takes nothing for so long is given up: until then a publisher is held up.
inline constexpr absl::Duration kWriteDeadline = absl::Seconds(2);
// Who waits for a confirmation looks so often whether there is still a connection: of its end
// nobody tells him.
inline constexpr absl::Duration kLookWhetherConnected = absl::Milliseconds(50);
// What is published meanwhile waits here; beyond it, publishing is refused.
inline constexpr int kMaxReconnectBufferBytes = 8 << 20;
// What arrived and was not heard yet. A pull brings at most some dozens of messages for each task,
// so this is met only when a handler hangs.
inline constexpr int kMaxPendingMessages = 1 << 20;
inline constexpr int kMaxPendingBytes = 512 << 20;

// So long a stream has to be gone until it is made anew: a server that comes back, or a connection
// that moves to another one, is of one mind by then.
inline constexpr absl::Duration kGoneFor = absl::Seconds(2);
// Processors without work look every half minute.
inline constexpr absl::Duration kMaxBetweenSightings = absl::Minutes(1);

// What travels over a NATS connection.

struct Header {
  std::string name;
  std::string value;
};

// To be sent. The data outlives the call that sends it.
struct Outgoing {
  std::string subject;
  std::vector<Header> headers = {};
  absl::string_view data = "";
};

// Statuses of messages that the server itself sends, in the manner of HTTP.
enum ServerStatus {
  kNoMessages = 404,
  kRequestTimeout = 408,
  kConflict = 409,
  kNoResponders = 503,
};

struct Incoming {
  std::string subject;
  std::string reply;  // where an answer goes; "" when none is wanted
  std::string data;
  int status = 0;           // a ServerStatus where the server itself speaks, else 0
  std::string description;  // what the server says then
};

// Connection: one connection to a NATS server, or to a cluster of them.
//
// It reconnects by itself, unless the server refuses its credentials twice: then nats.c closes it
// for good, which is logged as an error. While there is no connection, calls answer Unavailable
// within their timeout. No nats.c type leaves this folder.

struct ConnectionOptions {
  std::string name = "muster";        // as the server shows it
  std::string credentials_file = "";  // none
  std::string ca_file = "";  // the machine's; set, or a tls:// URL: the connection is encrypted
  std::string certificate_file = "";  // with key_file, for servers that ask for one
  std::string key_file = "";
  absl::Duration connect_timeout = absl::Seconds(2);
  // Whatever is sent is with the kernel when the call that sends it returns: for small messages
  // that somebody waits for, or that shall outlive this process. Without it nats.c gathers messages
  // for up to a millisecond, which is better for many of them.
  bool prompt = false;
  // Hears each time that the connection, once open, is lost (false) and is back (true), one after
  // the other, on a thread of its own; be quick. Not when it is closed on purpose.
  std::function<void(bool connected)> on_change = nullptr;
  // The server has refused twice who this is, while it was connected before: nats.c gives such a
  // connection up for good, and only a new one may fare better. Called once, on a thread of its
  // own.
  std::function<void()> on_refused = nullptr;
};

// Replies to requests go to subjects below a prefix of the connection's own.
// Thread-safe.
class Connection {
 public:
  // Hears messages on a thread of its own, one after the other; be quick.
  using MessageHandler = std::function<void(const Incoming&)>;

  // Ends when it is destroyed; then the handler is not running and never runs again. So do not
  // destroy it from within the handler.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };

  // `url`: "nats://host:4222", several with commas between. Unavailable: nobody answers there, or
  // whoever does and this process refuse each other; the message says what is wrong.
  // InvalidArgument: the options, a file that is not there for one.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& url,
                                                          const ConnectionOptions& options);
  virtual ~Connection() = default;

  // OK says that it left, or waits in a bounded buffer for a connection. Unavailable: there is no
  // connection, and that buffer is full.
  virtual absl::Status Publish(const Outgoing& message) = 0;

  // For what is worth something only at once: OK says that the server has it. nats.c alone gathers
  // what is published for up to a millisecond before it sends, and keeps it while there is no
  // connection. Unavailable: there is none, or the server has not confirmed within `timeout`.
  absl::Status PublishNow(const Outgoing& message, absl::Duration timeout);

  // Returns when the server has dealt with all that was sent before: messages are on their way to
  // their hearers, and a subscription hears what anybody publishes from now on. Unavailable: not
  // within `timeout`.
  virtual absl::Status Flush(absl::Duration timeout) = 0;

  // Sends all of `requests` at once and waits for one reply to each, in order. A reply that has not
  // come within `timeout`, or that says that nobody listens there, is Unavailable.
  virtual absl::StatusOr<std::vector<absl::StatusOr<Incoming>>> RequestAll(
      absl::Span<const Outgoing> requests, absl::Duration timeout) = 0;
  absl::StatusOr<Incoming> Request(const Outgoing& request, absl::Duration timeout);

  // Sends `request` and hands over one reply after the other until `take` answers false.
  // Unavailable as above. On the calling thread.
  virtual absl::Status RequestMany(const Outgoing& request, absl::Duration timeout,
                                   absl::FunctionRef<bool(Incoming reply)> take) = 0;

  virtual absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(const std::string& subject,
                                                                  MessageHandler handler) = 0;

  virtual bool connected() const = 0;
  bool prompt() const { return prompt_; }
  // Bytes that a message may have, headers included.
  virtual int64_t max_payload() const = 0;

 protected:
  explicit Connection(bool prompt) : prompt_(prompt) {}

 private:
  const bool prompt_;
};

// "nats://user:password@host" without who and his secret, for people.
std::string WithoutSecrets(absl::string_view urls);

}  // namespace muster::nats
