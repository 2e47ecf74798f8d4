// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/http/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/mutex.h"

namespace muster::queue_gateway::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace wire = boost::beast::http;

using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

// What is read at a time of a request's beginning, and of what is thrown away.
constexpr size_t kReadBytes = size_t{4} << 10;
// Beast reads a body through the buffer.
constexpr size_t kBodyReadBytes = size_t{64} << 10;

std::chrono::milliseconds Chrono(absl::Duration duration) {
  return std::chrono::milliseconds(absl::ToInt64Milliseconds(duration));
}

absl::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

// A line feed in a value would begin another header.
std::string HeaderValue(std::string value) {
  std::replace_if(
      value.begin(), value.end(), [](char c) { return absl::ascii_iscntrl(c) && c != '\t'; }, ' ');
  return value;
}

// Of a socket for both families, IPv4 addresses come as "::ffff:192.0.2.1".
std::string TextOf(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  }
  return address.to_string();
}

// Whether the peer has sent its last byte, read or not.
bool HasHungUp(int socket) {
  char byte = 0;
  const ssize_t peeked = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (peeked == 0) return true;
  if (peeked < 0) return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
  // What was sent ahead hides the end of the stream, as the farewell of TLS does.
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
  return info.tcpi_state != TCP_ESTABLISHED;
}

bool HasNoBody(int status) { return status == 204 || status == 304; }

// The status for what Beast could not read; 0: hang up without one.
int StatusOf(const beast::error_code& error) {
  if (error == wire::error::header_limit || error == wire::error::buffer_overflow) return 431;
  if (error == wire::error::body_limit) return 413;
  if (error == wire::error::end_of_stream || error == wire::error::partial_message) return 0;
  return error.category() == wire::make_error_code(wire::error::bad_method).category() ? 400 : 0;
}

template <typename Stream>
class HttpConnection final : public Connection,
                             public std::enable_shared_from_this<HttpConnection<Stream>> {
 public:
  template <typename... Args>
  HttpConnection(ConnectionHost* host, std::string peer_ip, Args&&... stream)
      : host_(host),
        peer_ip_(std::move(peer_ip)),
        stream_(std::forward<Args>(stream)...),
        buffer_(host->options().max_header_bytes + kBodyReadBytes) {}

  ~HttpConnection() override {
    host_->ReturnBodyBytes(body_bytes_);
    host_->OnClosed(this);
  }

  void Start() override {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      lowest().expires_after(Chrono(kHandshakeTimeout));
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = self()](beast::error_code error) {
                                if (!error) self->AwaitRequest();
                              });
    } else {
      AwaitRequest();
    }
  }

  void Drain() override {
    asio::post(stream_.get_executor(), [self = self()] {
      // What the read has got already, it still hands over.
      if (self->is_idle_) self->lowest().cancel();
    });
  }

  void CutOff() override { lowest().close(); }

 private:
  using Parser = wire::request_parser<wire::string_body>;

  std::shared_ptr<HttpConnection> self() { return this->shared_from_this(); }
  beast::tcp_stream& lowest() { return beast::get_lowest_layer(stream_); }

  // Idle until the first byte comes, with nothing in memory but a small buffer.
  void AwaitRequest() {
    parser_.reset();
    SkipEmptyLines();
    if (buffer_.size() > 0) return ReadHeader();
    if (host_->is_draining()) return HasArrived() ? ReadHeader() : lowest().close();
    buffer_.clear();
    buffer_.shrink_to_fit();
    is_idle_ = true;
    lowest().expires_after(Chrono(host_->options().idle_timeout));
    stream_.async_read_some(
        buffer_.prepare(kReadBytes), [self = self()](beast::error_code error, size_t bytes) {
          self->is_idle_ = false;
          // Cancelled: the server drains.
          const bool goes_on = error == asio::error::operation_aborted && self->HasArrived();
          if (error && !goes_on) return;
          self->buffer_.commit(bytes);
          self->SkipEmptyLines();
          if (goes_on || self->buffer_.size() > 0) return self->ReadHeader();
          self->AwaitRequest();
        });
  }

  // Some clients end a body with a line end of which its length knows nothing (RFC 9112,
  // section 2.2).
  void SkipEmptyLines() {
    const absl::string_view read(static_cast<const char*>(buffer_.data().data()), buffer_.size());
    buffer_.consume(std::min(read.find_first_not_of("\r\n"), read.size()));
  }

  // Whether there is more of the peer than was read.
  bool HasArrived() {
    beast::error_code error;
    return lowest().socket().available(error) > 0 && !error;
  }

  void ReadHeader() {
    const ServerOptions& options = host_->options();
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(options.max_header_bytes));
    parser_->body_limit(options.max_body_bytes);
    lowest().expires_after(Chrono(options.request_timeout));
    wire::async_read_header(stream_, buffer_, *parser_,
                            [self = self()](beast::error_code error, size_t) {
                              if (error) return self->OnReadError(error);
                              self->OnHeader();
                            });
  }

  void OnHeader() {
    const auto& header = parser_->get();
    const auto coding = header.find(wire::field::transfer_encoding);
    if (coding != header.end() && !absl::EqualsIgnoreCase(View(coding->value()), "chunked")) {
      return Refuse(501);
    }
    if (header.version() >= 11 && header.count(wire::field::host) != 1) return Refuse(400);
    if (header.count(wire::field::content_length) > 1) return Refuse(400);
    if (!TakeBodyBytes()) return Refuse(503);
    // A peer of HTTP/1.0 would take the first line of two for the reply.
    const bool is_held_back =
        header.version() >= 11 && !parser_->is_done() &&
        absl::EqualsIgnoreCase(View(header[wire::field::expect]), "100-continue");
    if (is_held_back) return Continue();
    ReadBody();
  }

  // The peer holds the body back until it is told to send it.
  void Continue() {
    continue_.emplace(wire::status::continue_, 11);
    wire::async_write(stream_, *continue_, [self = self()](beast::error_code error, size_t) {
      if (!error) self->ReadBody();
    });
  }

  // In parts: a peer holds no more of the memory for bodies than it has sent.
  void ReadBody() {
    if (parser_->is_done()) return RunHandler();
    parser_->eager(true);
    wire::async_read_some(stream_, buffer_, *parser_,
                          [self = self()](beast::error_code error, size_t) {
                            if (error) return self->OnReadError(error);
                            if (!self->TakeBodyBytes()) return self->Refuse(503);
                            self->ReadBody();
                          });
  }

  // Counts what was read of the body since the last call.
  bool TakeBodyBytes() {
    const size_t more = parser_->get().body().size() - body_bytes_;
    if (!host_->TakeBodyBytes(more)) return false;
    body_bytes_ += more;
    return true;
  }

  void OnReadError(const beast::error_code& error) {
    const int status = StatusOf(error);
    if (status != 0) return Refuse(status);
    lowest().close();
  }

  void RunHandler() {
    lowest().expires_never();
    Request request = Head();
    request.body = std::move(parser_->get().body());
    // Nothing closes the socket before the answer.
    host_->Run(std::move(request), std::make_shared<OneExchange>(self()),
               [socket = lowest().socket().native_handle()] { return HasHungUp(socket); });
  }

  // Holds the connection until the reply goes out, or the peer has hung up.
  class OneExchange final : public Exchange {
   public:
    explicit OneExchange(std::shared_ptr<HttpConnection> connection)
        : connection_(std::move(connection)) {}
    // Without a reply: the connection is let go on its own thread.
    ~OneExchange() override {
      base::MutexLock lock(&mu_);
      if (connection_ == nullptr) return;
      const auto executor = connection_->stream_.get_executor();
      asio::post(executor, [connection = std::move(connection_)] {});
    }

    // The caller lets go of the connection before the reply goes out: only its thread ends it.
    void Answer(Reply reply) override {
      base::MutexLock lock(&mu_);
      const auto executor = connection_->stream_.get_executor();
      asio::post(executor, [self = std::move(connection_), reply = std::move(reply)]() mutable {
        self->OnAnswer(std::move(reply));
      });
    }

    void WatchPeer(std::function<void()> gone) override {
      base::MutexLock lock(&mu_);
      if (connection_ == nullptr) return;  // answered already
      const auto executor = connection_->stream_.get_executor();
      asio::post(executor, [self = connection_, gone = std::move(gone)]() mutable {
        self->gone_ = std::move(gone);
        self->AwaitHangUp();
      });
    }

    // Nothing closes the socket before the answer, but for a peer that is watched.
    bool HasHungUp() override {
      base::MutexLock lock(&mu_);
      return connection_ != nullptr &&
             http::HasHungUp(connection_->lowest().socket().native_handle());
    }

   private:
    base::Mutex mu_;
    std::shared_ptr<HttpConnection> connection_ ABSL_GUARDED_BY(mu_);  // null: answered
  };

  void OnAnswer(Reply reply) {
    if (!lowest().socket().is_open()) return;
    const bool was_watched = std::exchange(gone_, nullptr) != nullptr;
    if (was_watched) {
      beast::error_code ignored;
      lowest().socket().cancel(ignored);
      look_again_.reset();
    }
    Write(std::move(reply), parser_->keep_alive());
  }

  // Ends with the answer, which takes `gone_` away.
  void AwaitHangUp() {
    if (gone_ == nullptr) return;
    lowest().socket().async_wait(asio::ip::tcp::socket::wait_read,
                                 [weak = this->weak_from_this()](beast::error_code error) {
                                   const auto self = weak.lock();
                                   if (self != nullptr && !error) self->OnReadable();
                                 });
  }

  void OnReadable() {
    if (gone_ == nullptr) return;
    if (HasHungUp(lowest().socket().native_handle())) {
      lowest().close();
      return std::exchange(gone_, nullptr)();
    }
    // Bytes that were sent ahead stay, and would make another wait end at once.
    look_again_.emplace(stream_.get_executor(), Chrono(kHangUpInterval));
    look_again_->async_wait([weak = this->weak_from_this()](beast::error_code error) {
      const auto self = weak.lock();
      if (self != nullptr && !error) self->AwaitHangUp();
    });
  }

  // The request but for its body, as far as it was read.
  Request Head() {
    const auto& message = parser_->get();
    Request request;
    request.method = std::string(View(message.method_string()));
    request.target = std::string(View(message.target()));
    for (const auto& field : message) {
      request.headers.emplace_back(std::string(View(field.name_string())),
                                   std::string(View(field.value())));
    }
    request.peer_ip = peer_ip_;
    request.is_https = std::is_same_v<Stream, TlsStream>;
    return request;
  }

  void Refuse(int status) {
    is_refused_ = true;
    Write(host_->Refuse(status, Head()), false);
  }

  void Write(Reply reply, bool keep_alive) {
    host_->CountBodyBytes(reply.body.size());
    body_bytes_ += reply.body.size();
    const bool is_head = parser_->get().method() == wire::verb::head;
    reply_.emplace();
    reply_->version(parser_->get().version() == 10 ? 10 : 11);
    reply_->result(static_cast<unsigned>(reply.status));
    for (auto& [name, value] : reply.headers) {
      reply_->insert(name, HeaderValue(std::move(value)));
    }
    reply_->keep_alive(keep_alive && !host_->is_draining());
    if (reply_->keep_alive() && reply_->version() == 11) {
      reply_->set(wire::field::keep_alive, absl::StrCat("timeout=", KeptSeconds()));
    }
    if (!HasNoBody(reply.status)) reply_->content_length(reply.body.size());
    if (!HasNoBody(reply.status) && !is_head) reply_->body() = std::move(reply.body);
    lowest().expires_after(Chrono(host_->options().reply_timeout));
    wire::async_write(stream_, *reply_,
                      [self = self()](beast::error_code error, size_t) { self->OnWritten(error); });
  }

  // What a peer is told to reuse the connection within; it begins to count later than this side.
  int64_t KeptSeconds() const {
    return absl::ToInt64Seconds(
        std::max(host_->options().idle_timeout - kKeepAliveMargin, absl::Seconds(1)));
  }

  void OnWritten(const beast::error_code& error) {
    const bool keep_alive = reply_->keep_alive();
    reply_.reset();
    host_->ReturnBodyBytes(std::exchange(body_bytes_, 0));
    if (error) return;
    if (keep_alive) return AwaitRequest();
    Close();
  }

  void Close() {
    lowest().expires_after(Chrono(kLingerTimeout));
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      if (!is_refused_) {
        return stream_.async_shutdown([self = self()](beast::error_code) {});
      }
    }
    beast::error_code ignored;
    lowest().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    if (is_refused_) Linger();
  }

  // Reads what the peer still sends, until it hangs up: without this, it might never see the reply.
  void Linger() {
    buffer_.clear();
    lowest().async_read_some(buffer_.prepare(kReadBytes),
                             [self = self()](beast::error_code error, size_t bytes) {
                               self->lingered_bytes_ += bytes;
                               if (error || self->lingered_bytes_ > kMaxLingerBytes) return;
                               self->Linger();
                             });
  }

  ConnectionHost* const host_;  // not owned
  const std::string peer_ip_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<wire::response<wire::empty_body>> continue_;
  std::optional<wire::response<wire::string_body>> reply_;
  size_t body_bytes_ = 0;  // taken of the host
  size_t lingered_bytes_ = 0;
  std::function<void()> gone_;  // set while the peer is watched
  std::optional<asio::steady_timer> look_again_;
  bool is_idle_ = false;
  bool is_refused_ = false;
};

}  // namespace

std::shared_ptr<Connection> MakeConnection(asio::ip::tcp::socket socket, asio::ssl::context* tls,
                                           ConnectionHost* host) {
  beast::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  const std::string peer_ip = TextOf(socket.remote_endpoint(ignored).address());
  if (tls == nullptr) {
    return std::make_shared<HttpConnection<PlainStream>>(host, peer_ip, std::move(socket));
  }
  return std::make_shared<HttpConnection<TlsStream>>(host, peer_ip, std::move(socket), *tls);
}

}  // namespace muster::queue_gateway::http
