// SPDX-License-Identifier: Apache-2.0
#include "muster/nats/connection.h"

#include <nats/nats.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/clock.h"
#include "muster/base/file_version.h"
#include "muster/base/log.h"
#include "muster/base/random.h"
#include "muster/base/status.h"
#include "muster/nats/requester.h"
#include "muster/nats/status.h"
#include "muster/nats/subscription.h"

namespace muster::nats {
namespace {

struct DestroyOptions {
  void operator()(natsOptions* options) const { natsOptions_Destroy(options); }
};
using OptionsPtr = std::unique_ptr<natsOptions, DestroyOptions>;

// Describes a failure. The last error of the calling thread has the details: which file, what is
// wrong with a certificate.
std::string WhatIsWrong(natsStatus status) {
  natsStatus of = NATS_OK;
  const char* const particulars = nats_GetLastError(&of);
  const absl::string_view text = natsStatus_GetText(status);
  if (of != status || particulars == nullptr || *particulars == '\0' || text == particulars) {
    return std::string(text);
  }
  return absl::StrCat(text, ": ", particulars);
}

bool AsksForTls(const std::string& url) { return absl::StartsWithIgnoreCase(url, "tls://"); }

class NatsConnection final : public Connection {
 public:
  explicit NatsConnection(ConnectionOptions options)
      : Connection(options.prompt), options_(std::move(options)), requester_(options_.prompt) {
    for (const std::string& path :
         {options_.ca_file, options_.certificate_file, options_.key_file}) {
      if (!path.empty()) security_files_.emplace_back(path, base::FileVersion(path));
    }
  }

  ~NatsConnection() override {
    closing_ = true;
    requester_.End();
    if (connection_ == nullptr) return;
    natsConnection_Close(connection_);
    closed_.Await();
    natsConnection_Destroy(connection_);
  }

  absl::Status Connect(const std::string& url) {
    MUSTER_ASSIGN_OR_RETURN(const OptionsPtr options, MakeOptions(url));
    // Unavailable for every failure: an operator may repair any of them at the server.
    if (const natsStatus status = natsConnection_Connect(&connection_, options.get());
        status != NATS_OK) {
      return absl::UnavailableError(absl::StrCat("connecting to ", WithoutSecrets(url), ": ",
                                                 WhatIsWrong(status), HintAt(url, status)));
    }
    return requester_.Begin(connection_);
  }

  // A server that asks for a certificate and is shown none only hangs up.
  std::string HintAt(const std::string& url, natsStatus status) const {
    const bool is_encrypted = AsksForTls(url) || !options_.ca_file.empty();
    const bool may_be_asked = status == NATS_SSL_ERROR || status == NATS_PROTOCOL_ERROR ||
                              status == NATS_CONNECTION_CLOSED || status == NATS_IO_ERROR ||
                              status == NATS_NO_SERVER;
    if (!is_encrypted || !may_be_asked || !options_.certificate_file.empty()) return "";
    return "; the server may ask for a certificate, and none is named";
  }

  absl::Status Publish(const Outgoing& message) override {
    return requester_.Send(message, message.reply);
  }
  absl::Status Flush(absl::Duration timeout) override { return requester_.Flush(timeout); }
  absl::StatusOr<std::vector<absl::StatusOr<Incoming>>> RequestAll(
      absl::Span<const Outgoing> requests, absl::Duration timeout) override {
    return requester_.RequestAll(requests, timeout);
  }
  absl::Status RequestMany(const Outgoing& request, absl::Duration timeout,
                           absl::FunctionRef<bool(Incoming)> take) override {
    return requester_.RequestMany(request, timeout, take);
  }

  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(const std::string& subject,
                                                          MessageHandler handler) override {
    auto subscription = std::make_unique<CallbackSubscription>(std::move(handler));
    MUSTER_RETURN_IF_ERROR(subscription->Begin(connection_, subject));
    return subscription;
  }

  void LimitPatience(absl::Duration patience) override { requester_.LimitPatience(patience); }

  bool connected() const override {
    return natsConnection_Status(connection_) == NATS_CONN_STATUS_CONNECTED;
  }
  int64_t reconnects() const override;
  int64_t times_back() const override { return times_back_; }
  int64_t errors() const override { return errors_; }
  int64_t requests_in_flight() const override { return requester_.in_flight(); }
  int64_t max_payload() const override { return natsConnection_GetMaxPayload(connection_); }

 private:
  // Callbacks of nats.c, on threads of its own.
  static void OnDisconnected(natsConnection*, void* self);
  static void OnReconnected(natsConnection* connection, void* self);
  static void OnError(natsConnection*, natsSubscription*, natsStatus status, void* self);
  static void OnClosed(natsConnection*, void* self);
  // Called before each round of tries, which it lets begin after so many milliseconds.
  static int64_t BeforeTries(natsConnection*, int rounds, void* self);
  // Whether a file that nats.c has read is another one by now.
  bool IsRenewed() const;
  void Refused(absl::string_view why) {
    if (refused_.exchange(true) || !options_.on_refused) return;
    options_.on_refused(absl::UnavailableError(why));
  }
  void Tell(bool connected) {
    if (closing_) return;
    if (options_.on_change) options_.on_change(connected);
    TellFollowers(connected);
  }

  absl::StatusOr<OptionsPtr> MakeOptions(const std::string& url);
  natsStatus SetSecurity(natsOptions* options, const std::vector<std::string>& urls) const;

  const ConnectionOptions options_;
  std::vector<std::pair<std::string, std::optional<std::string>>> security_files_;  // path, version
  std::atomic<bool> closing_{false};
  std::atomic<bool> refused_{false};
  absl::Duration lost_since_;  // of the thread of nats.c that reconnects
  std::atomic<int64_t> errors_{0};
  std::atomic<int64_t> times_back_{0};
  Event closed_;
  natsConnection* connection_ = nullptr;  // owned
  Requester requester_;
};

// nats.c counts each server that took its call, also one that refuses it then, or hangs up.
int64_t NatsConnection::reconnects() const {
  natsStatistics* statistics = nullptr;
  uint64_t reconnects = 0;
  if (natsStatistics_Create(&statistics) == NATS_OK) {
    natsConnection_GetStats(connection_, statistics);
    natsStatistics_GetCounts(statistics, nullptr, nullptr, nullptr, nullptr, &reconnects);
    natsStatistics_Destroy(statistics);
  }
  return static_cast<int64_t>(reconnects);
}

void NatsConnection::OnDisconnected(natsConnection*, void* self) {
  auto* const connection = static_cast<NatsConnection*>(self);
  if (connection->closing_) return;
  ++connection->errors_;
  base::Log(base::kWarning, "the NATS connection is lost; it is tried again until it is back",
            {{"connection", connection->options_.name}});
  connection->Tell(false);
}

void NatsConnection::OnReconnected(natsConnection* connection, void* self) {
  auto* const reconnected = static_cast<NatsConnection*>(self);
  char url[256] = "";
  natsConnection_GetConnectedUrl(connection, url, sizeof(url));
  base::Log(base::kInfo, "the NATS connection is back",
            {{"connection", reconnected->options_.name}, {"url", WithoutSecrets(url)}});
  ++reconnected->times_back_;
  reconnected->Tell(true);
}

void NatsConnection::OnClosed(natsConnection*, void* self) {
  auto* connection = static_cast<NatsConnection*>(self);
  if (!connection->closing_) {
    base::Log(base::kError, "the NATS connection is closed for good: the server refuses us",
              {{"connection", connection->options_.name}});
    connection->Refused(
        "the NATS server refuses this instance; a restarted one waits until the server accepts "
        "it");
  }
  connection->closed_.Set();
}

bool NatsConnection::IsRenewed() const {
  return std::any_of(security_files_.begin(), security_files_.end(), [](const auto& file) {
    const std::optional<std::string> now = base::FileVersion(file.first);
    return now.has_value() && now != file.second;
  });
}

// nats.c reads the files once. When the certificate has expired, no try of this connection will be
// accepted again.
int64_t NatsConnection::BeforeTries(natsConnection*, int rounds, void* self) {
  auto* const connection = static_cast<NatsConnection*>(self);
  const absl::Duration now = base::RealClock()->Monotonic();
  if (rounds <= 1) connection->lost_since_ = now;
  const bool is_patient =
      now - connection->lost_since_ < connection->options_.patience_when_renewed;
  if (!is_patient && !connection->closing_ && !connection->refused_ && connection->IsRenewed()) {
    base::Log(
        base::kError,
        "the NATS connection does not come back, and its certificates were renewed meanwhile: "
        "only a new one shows them",
        {{"connection", connection->options_.name}});
    connection->Refused(
        "the NATS connection does not come back, and its certificates were renewed; a restart "
        "makes a new one, which shows them");
  }
  const double jitter = static_cast<double>(base::RandomSeed() % 1000) / 1000;
  return absl::ToInt64Milliseconds(kReconnectWait + jitter * kReconnectJitter);
}

void NatsConnection::OnError(natsConnection*, natsSubscription*, natsStatus status, void* self) {
  ++static_cast<NatsConnection*>(self)->errors_;
  base::Log(base::kWarning, "a NATS error",
            {{"connection", static_cast<NatsConnection*>(self)->options_.name},
             {"why", natsStatus_GetText(status)}});
}

natsStatus NatsConnection::SetSecurity(natsOptions* options,
                                       const std::vector<std::string>& urls) const {
  natsStatus status = NATS_OK;
  if (!options_.credentials_file.empty()) {
    status = natsOptions_SetUserCredentialsFromFiles(options, options_.credentials_file.c_str(),
                                                     nullptr);
  }
  // Unless TLS is required here, nats.c accepts a server without TLS, also for a tls:// URL.
  if (status == NATS_OK &&
      (!options_.ca_file.empty() || std::any_of(urls.begin(), urls.end(), AsksForTls))) {
    status = natsOptions_SetSecure(options, true);
  }
  if (status == NATS_OK && !options_.ca_file.empty()) {
    status = natsOptions_LoadCATrustedCertificates(options, options_.ca_file.c_str());
  }
  if (status == NATS_OK && !options_.certificate_file.empty()) {
    status = natsOptions_LoadCertificatesChain(options, options_.certificate_file.c_str(),
                                               options_.key_file.c_str());
  }
  return status;
}

absl::StatusOr<OptionsPtr> NatsConnection::MakeOptions(const std::string& url) {
  natsOptions* made = nullptr;
  MUSTER_RETURN_IF_ERROR(ToStatus(natsOptions_Create(&made), "NATS options"));
  OptionsPtr options(made);
  const std::vector<std::string> urls = absl::StrSplit(url, ',', absl::SkipEmpty());
  std::vector<const char*> servers;
  for (const std::string& server : urls) servers.push_back(server.c_str());
  natsStatus status =
      natsOptions_SetServers(made, servers.data(), static_cast<int>(servers.size()));
  const auto set = [&status](natsStatus next) {
    if (status == NATS_OK) status = next;
  };
  set(natsOptions_SetName(made, options_.name.c_str()));
  set(natsOptions_SetTimeout(made, absl::ToInt64Milliseconds(options_.connect_timeout)));
  set(natsOptions_SetMaxReconnect(made, -1));
  set(natsOptions_SetCustomReconnectDelay(made, &BeforeTries, this));
  set(natsOptions_SetReconnectBufSize(made, kMaxReconnectBufferBytes));
  set(natsOptions_SetWriteDeadline(made, absl::ToInt64Milliseconds(kWriteDeadline)));
  set(natsOptions_SetSendAsap(made, options_.prompt));
  set(natsOptions_SetPingInterval(made, absl::ToInt64Milliseconds(kPingInterval)));
  set(natsOptions_SetDisconnectedCB(made, &OnDisconnected, this));
  set(natsOptions_SetReconnectedCB(made, &OnReconnected, this));
  set(natsOptions_SetErrorHandler(made, &OnError, this));
  set(natsOptions_SetClosedCB(made, &OnClosed, this));
  set(SetSecurity(made, urls));
  if (status != NATS_OK) {
    return absl::InvalidArgumentError(
        absl::StrCat("NATS options for ", WithoutSecrets(url), ": ", WhatIsWrong(status)));
  }
  return options;
}

}  // namespace

std::string WithoutSecrets(absl::string_view urls) {
  std::vector<std::string> shown;
  for (absl::string_view url : absl::StrSplit(urls, ',')) {
    // nats.c takes a URL without a scheme, too.
    const size_t scheme = url.find("://"), end = url.rfind('@');
    const size_t begin = scheme == url.npos ? 0 : scheme + 3;
    if (end != url.npos && end >= begin) {
      shown.push_back(absl::StrCat(url.substr(0, begin), url.substr(end + 1)));
    } else {
      shown.emplace_back(url);
    }
  }
  return absl::StrJoin(shown, ",");
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& url,
                                                             const ConnectionOptions& options) {
  auto connection = std::make_unique<NatsConnection>(options);
  MUSTER_RETURN_IF_ERROR(connection->Connect(url));
  return connection;
}

absl::StatusOr<std::unique_ptr<Connection::Following>> Connection::FollowChanges(
    std::function<void(bool connected)> call) {
  return followers_.Subscribe(std::move(call));
}

void Connection::TellFollowers(bool connected) {
  // Fails only for a follower that calls it itself.
  followers_.Tell(connected).IgnoreError();
}

absl::Status Connection::PublishNow(const Outgoing& message, absl::Duration timeout) {
  // Check first: without a connection the message would be sent later, when the connection is back.
  if (!connected()) {
    return absl::UnavailableError(
        absl::StrCat("publishing to ", message.subject, ": there is no connection"));
  }
  MUSTER_RETURN_IF_ERROR(Publish(message));
  return base::Annotate(Flush(timeout), absl::StrCat("publishing to ", message.subject));
}

absl::StatusOr<Incoming> Connection::Request(const Outgoing& request, absl::Duration timeout) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<absl::StatusOr<Incoming>> answers,
                          RequestAll(absl::MakeConstSpan(&request, 1), timeout));
  return std::move(answers.front());
}

}  // namespace muster::nats
