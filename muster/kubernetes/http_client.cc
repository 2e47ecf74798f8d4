// SPDX-License-Identifier: Apache-2.0
#include "muster/kubernetes/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/sigpipe_block.h"
#include "muster/base/status.h"
#include "muster/kubernetes/limits.h"

namespace muster::kubernetes {

// CurlConnection: one exchange at a time over a connection that stays open between them.
// Not thread-safe.
class CurlConnection {
 public:
  CurlConnection();
  ~CurlConnection();
  CurlConnection(const CurlConnection&) = delete;
  CurlConnection& operator=(const CurlConnection&) = delete;

  // As HttpClient::Stream.
  absl::StatusOr<HttpAnswer> Exchange(const Access& access, const HttpRequest& request,
                                      HttpClient::Sink sink, const std::stop_token& stop);

 private:
  void* const multi_;  // a CURLM, owned
};

namespace {

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;

struct HeadersDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Headers = std::unique_ptr<curl_slist, HeadersDeleter>;

void AddHeader(Headers* headers, const std::string& line) {
  headers->reset(curl_slist_append(headers->release(), line.c_str()));
}

constexpr int kUnauthorized = 401;

// What one exchange leaves behind while it runs.
struct Reception {
  CURL* easy;
  HttpClient::Sink sink;
  std::string error_body = {};
  absl::Status failure = absl::OkStatus();
  char why[CURL_ERROR_SIZE] = "";
};

size_t TakePiece(char* data, size_t one, size_t size, void* context) {
  auto* const reception = static_cast<Reception*>(context);
  long code = 0;
  curl_easy_getinfo(reception->easy, CURLINFO_RESPONSE_CODE, &code);
  if (code >= 200 && code < 300) {
    reception->failure = reception->sink({data, size});
    return reception->failure.ok() ? size : 0;
  }
  // An error's first words will do.
  std::string& body = reception->error_body;
  body.append(data, std::min(size, kMaxEventBytes - std::min(kMaxEventBytes, body.size())));
  return size;
}

void UseMaterial(CURL* easy, const CredentialSource& material, CURLoption file, CURLoption data) {
  if (!material.file.empty()) {
    curl_easy_setopt(easy, file, material.file.c_str());
  } else if (!material.data.empty()) {
    curl_blob blob = {const_cast<char*>(material.data.data()), material.data.size(),
                      CURL_BLOB_COPY};
    curl_easy_setopt(easy, data, &blob);
  }
}

void UseTls(CURL* easy, const Access& access) {
  UseMaterial(easy, access.authority, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB);
  UseMaterial(easy, access.certificate, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB);
  UseMaterial(easy, access.key, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB);
  // An authority that was exchanged holds for the next connection.
  curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, access.skip_verification ? 0L : 1L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, access.skip_verification ? 0L : 2L);
}

void UseRequest(CURL* easy, const std::string& url, const HttpRequest& request,
                curl_slist* headers) {
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  // Plain text goes to loopback only, so not to a proxy that the environment names.
  if (absl::StartsWith(url, "http://")) curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (!request.body.empty()) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, request.body.data());
  }
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  const auto milliseconds = std::clamp<int64_t>(absl::ToInt64Milliseconds(request.limit), 1,
                                                absl::ToInt64Milliseconds(absl::Hours(1)));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(milliseconds));
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 15L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
}

Headers MakeHeaders(const HttpRequest& request, const std::string& token) {
  Headers headers;
  AddHeader(&headers, "Accept: application/json");
  AddHeader(&headers, "User-Agent: muster");
  AddHeader(&headers, "Expect:");
  if (!token.empty()) AddHeader(&headers, absl::StrCat("Authorization: Bearer ", token));
  if (!request.body.empty()) {
    AddHeader(&headers, absl::StrCat("Content-Type: ", request.content_type));
  }
  return headers;
}

// Runs until it is over, or `stop` is requested (nullopt). All calls that may write run under a
// SigPipeBlock: OpenSSL writes to a connection that the server may have closed.
std::optional<CURLcode> RunToEnd(CURLM* multi, const std::stop_token& stop) {
  const std::stop_callback wake(stop, [multi] { curl_multi_wakeup(multi); });
  const base::SigPipeBlock block;
  while (true) {
    int running = 0;
    if (curl_multi_perform(multi, &running) != CURLM_OK) return CURLE_FAILED_INIT;
    int left = 0;
    const CURLMsg* const message = curl_multi_info_read(multi, &left);
    if (message != nullptr && message->msg == CURLMSG_DONE) return message->data.result;
    if (stop.stop_requested()) return std::nullopt;
    if (curl_multi_poll(multi, nullptr, 0, 1000, nullptr) != CURLM_OK) return CURLE_FAILED_INIT;
  }
}

absl::Status FailureOf(CURLcode code, const Reception& reception) {
  if (!reception.failure.ok()) return reception.failure;
  const char* const why = reception.why[0] != '\0' ? reception.why : curl_easy_strerror(code);
  if (code == CURLE_OPERATION_TIMEDOUT) return absl::DeadlineExceededError(why);
  return absl::UnavailableError(why);
}

HttpAnswer AnswerOf(CURL* easy, std::string error_body) {
  HttpAnswer answer;
  long code = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
  answer.code = static_cast<int>(code);
  answer.body = std::move(error_body);
  curl_off_t seconds = 0;
  curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
  if (seconds > 0) answer.retry_after = absl::Seconds(static_cast<int64_t>(seconds));
  return answer;
}

}  // namespace

CurlConnection::CurlConnection() : multi_(curl_multi_init()) {
  if (multi_ == nullptr) throw std::bad_alloc();
}

CurlConnection::~CurlConnection() {
  const base::SigPipeBlock block;
  curl_multi_cleanup(multi_);
}

absl::StatusOr<HttpAnswer> CurlConnection::Exchange(const Access& access,
                                                    const HttpRequest& request,
                                                    HttpClient::Sink sink,
                                                    const std::stop_token& stop) {
  MUSTER_ASSIGN_OR_RETURN(const std::string token, CurrentToken(access));
  const Easy easy(curl_easy_init());
  if (easy == nullptr) throw std::bad_alloc();
  const std::string url = access.server + request.target;
  const Headers headers = MakeHeaders(request, token);
  Reception reception{easy.get(), sink};
  UseRequest(easy.get(), url, request, headers.get());
  UseTls(easy.get(), access);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &TakePiece);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &reception);
  curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, reception.why);

  if (curl_multi_add_handle(multi_, easy.get()) != CURLM_OK) {
    return absl::InternalError("libcurl cannot begin an exchange");
  }
  const std::optional<CURLcode> end = RunToEnd(multi_, stop);
  {
    const base::SigPipeBlock block;
    curl_multi_remove_handle(multi_, easy.get());
  }
  if (!end.has_value()) return absl::CancelledError("stopped");
  if (*end != CURLE_OK) return FailureOf(*end, reception);
  return AnswerOf(easy.get(), std::move(reception.error_body));
}

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Open(Access access) {
  MUSTER_RETURN_IF_ERROR(Validate(access));
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(access)));
}

HttpClient::HttpClient(Access access) : access_(std::move(access)) {}

HttpClient::~HttpClient() = default;

absl::StatusOr<HttpAnswer> HttpClient::Send(const HttpRequest& request,
                                            const std::stop_token& stop) {
  std::string body;
  const auto collect = [&](absl::string_view piece) {
    if (body.size() + piece.size() > kMaxAnswerBytes) {
      return absl::UnavailableError("the answer is too large");
    }
    body.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
  MUSTER_ASSIGN_OR_RETURN(HttpAnswer answer, Stream(request, collect, stop));
  if (answer.body.empty()) answer.body = std::move(body);
  return answer;
}

absl::StatusOr<HttpAnswer> HttpClient::Stream(const HttpRequest& request, Sink sink,
                                              const std::stop_token& stop) {
  std::unique_ptr<CurlConnection> connection = Borrow();
  auto answer = connection->Exchange(access_, request, sink, stop);
  // A connection shows the client certificate that it began with for as long as it is used. When
  // the server takes that for expired, the next connection shows what the file holds then.
  const bool is_refused = answer.ok() && answer->code == kUnauthorized;
  if (!is_refused) GiveBack(std::move(connection));
  return answer;
}

std::unique_ptr<CurlConnection> HttpClient::Borrow() {
  {
    base::MutexLock lock(&mu_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return std::make_unique<CurlConnection>();
}

void HttpClient::GiveBack(std::unique_ptr<CurlConnection> connection) {
  base::MutexLock lock(&mu_);
  if (idle_.size() < kMaxIdleConnections) idle_.push_back(std::move(connection));
}

}  // namespace muster::kubernetes
