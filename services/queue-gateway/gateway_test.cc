// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/gateway.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "muster/telemetry/registry.h"
#include "services/queue-gateway/auth/mac.h"
#include "services/queue-gateway/operations/acl.h"
#include "services/queue-gateway/operations/long_polls.h"
#include "services/queue-gateway/operations/waking_store.h"
#include "services/queue-gateway/protocol/xml_reader.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/queue-gateway/auth/signed_requests.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::queue_gateway {
namespace {

using auth::testing::Fields;
using ::testing::HasSubstr;

constexpr char kMessage[] = "<QueueMessage><MessageText>hello</MessageText></QueueMessage>";

class GatewayTest : public ::testing::Test {
 protected:
  GatewayTest() {
    queue::rocksdb::Options options;
    options.clock = &clock_;
    queues_ = *queue::rocksdb::RocksDbQueueStore::Open(folder_ / "queue", options);
    stores_ = {queues_.get(), &records_, &clock_};
    gateway_ = std::make_unique<Gateway>(&authenticator_, &throttle_, stores_, &registry_);
  }

  http::Reply Ask(const std::string& method, const std::string& target, http::Headers headers = {},
                  const std::string& body = "") {
    http::Request request;
    request.method = method;
    request.target = target;
    request.headers = std::move(headers);
    request.headers.emplace_back("Host", "localhost:1");
    request.body = body;
    request.peer_ip = "192.0.2.1";
    return gateway_->Handle(request);
  }

  // "/sally/queue?a=b" with the parameters of a SAS.
  static std::string With(const Fields& sas, std::string target) {
    for (const auto& [name, value] : sas) {
      absl::StrAppend(&target, target.find('?') == std::string::npos ? "?" : "&", name, "=",
                      absl::StrReplaceAll(value, {{"+", "%2B"}, {"/", "%2F"}, {"=", "%3D"}}));
    }
    return target;
  }

  static std::string Header(const http::Reply& reply, absl::string_view name) {
    return std::string(http::HeaderOf(reply.headers, name).value_or("(none)"));
  }
  static std::string Said(const http::Reply& reply) {
    return absl::StrCat(reply.status, " ", Header(reply, "x-ms-error-code"));
  }

  os::TempDir folder_;
  base::FakeClock clock_;
  std::unique_ptr<queue::rocksdb::RocksDbQueueStore> queues_;
  sync::testing::MemorySyncStore records_;
  operations::Stores stores_ = {};
  auth::FixedAccounts accounts_{{{"sally", auth::testing::Sally()}}};
  auth::Authenticator authenticator_{&accounts_, nullptr, &clock_};
  throttle::RequestThrottle throttle_{{}, &clock_};
  telemetry::Registry registry_;
  std::unique_ptr<Gateway> gateway_;
};

TEST_F(GatewayTest, RunsTheOperationOfACallerThatMay) {
  const Fields account = auth::testing::AccountSas();
  EXPECT_EQ(Ask("PUT", With(account, "/sally/my-queue")).status, 201);
  const Fields service = auth::testing::ServiceSas();
  EXPECT_EQ(Ask("POST", With(service, "/sally/my-queue/messages"), {}, kMessage).status, 201);
  EXPECT_THAT(Ask("GET", With(service, "/sally/my-queue/messages")).body,
              HasSubstr("<MessageText>hello</MessageText>"));
}

// Keeps the reply.
class KeptExchange final : public http::Exchange {
 public:
  void Answer(http::Reply reply) override {
    base::MutexLock lock(&mu_);
    reply_ = std::move(reply);
    changed_.NotifyAll();
  }
  void WatchPeer(std::function<void()> gone) override {
    base::MutexLock lock(&mu_);
    gone_ = std::move(gone);
  }

  http::Reply Await() {
    base::MutexLock lock(&mu_);
    while (!reply_.has_value()) changed_.Wait(&mu_);
    return *reply_;
  }
  void HangUp() {
    std::function<void()> gone;
    {
      base::MutexLock lock(&mu_);
      gone = gone_;
    }
    gone();
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  std::optional<http::Reply> reply_ ABSL_GUARDED_BY(mu_);
  std::function<void()> gone_ ABSL_GUARDED_BY(mu_);
};

class WaitingGatewayTest : public GatewayTest {
 protected:
  WaitingGatewayTest() {
    stores_.queues = &waking_;
    gateway_ = std::make_unique<Gateway>(&authenticator_, &throttle_, stores_, nullptr, &polls_);
    EXPECT_TRUE(queues_->CreateQueue({"sally", "my-queue"}, {{"muster-longpoll", "20"}}).ok());
  }

  // Its rounds use the store behind which they are.
  ~WaitingGatewayTest() override { polls_.Drain(); }

  std::shared_ptr<KeptExchange> Get() { return Begin("GET"); }
  // What a connection asks of the messages of the queue.
  std::shared_ptr<KeptExchange> Begin(const std::string& method, const std::string& body = "") {
    http::Request request;
    request.method = method;
    request.body = body;
    request.target = With(auth::testing::ServiceSas(), "/sally/my-queue/messages");
    request.headers = {{"Host", "localhost:1"}, {"x-ms-client-request-id", "r-1"}};
    request.peer_ip = "192.0.2.1";
    auto exchange = std::make_shared<KeptExchange>();
    gateway_->Handle(request, exchange);
    return exchange;
  }

  operations::LongPolls polls_{queues_.get(), &clock_};
  operations::WakingStore waking_{queues_.get(), &polls_};
};

TEST_F(WaitingGatewayTest, AnswersAGetWhenAMessageComes) {
  const auto waiting = Get();
  EXPECT_EQ(polls_.waiters(), 1);
  Ask("POST", With(auth::testing::ServiceSas(), "/sally/my-queue/messages"), {}, kMessage);
  const http::Reply reply = waiting->Await();
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr("<MessageText>hello</MessageText>"));
  EXPECT_EQ(Header(reply, "x-ms-client-request-id"), "r-1");
}

TEST_F(WaitingGatewayTest, AnswersAGetWhenAPutComesThatOthersMayJoin) {
  const auto waiting = Get();
  EXPECT_EQ(Begin("POST", kMessage)->Await().status, 201);
  EXPECT_THAT(waiting->Await().body, HasSubstr("<MessageText>hello</MessageText>"));
}

TEST_F(WaitingGatewayTest, FreesTheWaiterOfAPeerThatHangsUp) {
  Get()->HangUp();
  EXPECT_EQ(polls_.waiters(), 0);
}

TEST_F(WaitingGatewayTest, AnswersNothingWhenTheTimeIsUpAndWhenItDrains) {
  const auto late = Get();
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Seconds(20));
  EXPECT_THAT(late->Await().body, HasSubstr("<QueueMessagesList/>"));
  const auto drained = Get();
  polls_.Drain();
  EXPECT_THAT(drained->Await().body, HasSubstr("<QueueMessagesList/>"));
  EXPECT_THAT(Get()->Await().body, HasSubstr("<QueueMessagesList/>"));
}

// Counts who asks for metadata.
class MetadataCounter final : public queue::InterceptedStore {
 public:
  using InterceptedStore::InterceptedStore;
  absl::StatusOr<queue::Metadata> GetMetadata(const queue::QueueId& queue) override {
    ++asked;
    return InterceptedStore::GetMetadata(queue);
  }
  int asked = 0;
};

TEST_F(WaitingGatewayTest, AsksForTheMetadataOfAQueueOnceWhetherTheGetWaitsOrNot) {
  MetadataCounter counter(&waking_);
  stores_.queues = &counter;
  Gateway gateway(&authenticator_, &throttle_, stores_, nullptr, &polls_);
  http::Request request;
  request.method = "GET";
  request.target = With(auth::testing::ServiceSas(), "/sally/my-queue/messages");
  request.headers = {{"Host", "localhost:1"}};
  request.peer_ip = "192.0.2.1";
  const auto waits = std::make_shared<KeptExchange>();
  gateway.Handle(request, waits);
  EXPECT_EQ(polls_.waiters(), 1);
  EXPECT_EQ(counter.asked, 1);
  ASSERT_TRUE(queues_->SetMetadata({"sally", "my-queue"}, {}).ok());
  const auto at_once = std::make_shared<KeptExchange>();
  gateway.Handle(request, at_once);
  EXPECT_THAT(at_once->Await().body, HasSubstr("<QueueMessagesList/>"));
  EXPECT_EQ(counter.asked, 2);
  polls_.Drain();
}

TEST_F(WaitingGatewayTest, AnswersWhatIsWrongAtOnce) {
  http::Request request;
  request.method = "GET";
  request.target = With(auth::testing::ServiceSas(), "/sally/my-queue/messages?numofmessages=0");
  request.headers = {{"Host", "localhost:1"}};
  request.peer_ip = "192.0.2.1";
  const auto exchange = std::make_shared<KeptExchange>();
  gateway_->Handle(request, exchange);
  EXPECT_EQ(Said(exchange->Await()), "400 OutOfRangeQueryParameterValue");
  request.target = "/sally/my-queue/messages";
  const auto refused = std::make_shared<KeptExchange>();
  gateway_->Handle(request, refused);
  EXPECT_EQ(refused->Await().status, 403);
}

TEST_F(GatewayTest, SaysThatItIsBusyBeyondTheTargetOfAQueue) {
  throttle::RequestThrottle throttle({.per_queue = 2}, &clock_);
  gateway_ = std::make_unique<Gateway>(&authenticator_, &throttle, stores_);
  ASSERT_TRUE(queues_->CreateQueue({"sally", "my-queue"}, {}).ok());
  const std::string get = With(auth::testing::ServiceSas(), "/sally/my-queue/messages");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Ask("GET", "/sally/my-queue/messages").status, 403) << "nobody in particular";
  }
  EXPECT_EQ(Ask("GET", get).status, 200);
  EXPECT_EQ(Ask("GET", get).status, 200);
  const http::Reply busy = Ask("GET", get);
  EXPECT_EQ(Said(busy), "503 ServerBusy");
  EXPECT_EQ(Header(busy, "Retry-After"), "1");
  clock_.Advance(absl::Milliseconds(500));
  EXPECT_EQ(Ask("GET", get).status, 200);
}

TEST_F(GatewayTest, DoesNothingForACallerWithoutProof) {
  ASSERT_TRUE(queues_->CreateQueue({"sally", "my-queue"}, {}).ok());
  for (const auto& [method, path] : std::vector<std::pair<std::string, std::string>>{
           {"GET", "/sally?comp=list"},
           {"GET", "/sally?restype=service&comp=properties"},
           {"PUT", "/sally?restype=service&comp=properties"},
           {"GET", "/sally-secondary?restype=service&comp=stats"},
           {"PUT", "/sally/my-queue"},
           {"DELETE", "/sally/my-queue"},
           {"GET", "/sally/my-queue?comp=metadata"},
           {"HEAD", "/sally/my-queue?comp=metadata"},
           {"PUT", "/sally/my-queue?comp=metadata"},
           {"GET", "/sally/my-queue?comp=acl"},
           {"PUT", "/sally/my-queue?comp=acl"},
           {"POST", "/sally/my-queue/messages"},
           {"PUT", "/sally/my-queue/messages"},
           {"GET", "/sally/my-queue/messages"},
           {"GET", "/sally/my-queue/messages?peekonly=true"},
           {"DELETE", "/sally/my-queue/messages"},
           {"PUT", "/sally/my-queue/messages/id?popreceipt=x&visibilitytimeout=1"},
           {"DELETE", "/sally/my-queue/messages/id?popreceipt=x"}}) {
    const http::Reply reply = Ask(method, path, {}, kMessage);
    EXPECT_GE(reply.status, 401) << method << " " << path;
    EXPECT_LE(reply.status, 403) << method << " " << path;
    EXPECT_NE(Header(reply, "x-ms-error-code"), "(none)") << method << " " << path;
  }
  EXPECT_EQ(queues_->Stats({"sally", "my-queue"})->total_in, 0);
  // A SAS for one queue opens no other, and one that was changed opens none.
  const Fields service = auth::testing::ServiceSas();
  EXPECT_EQ(Said(Ask("GET", With(service, "/sally/other-queue/messages"))),
            "403 AuthenticationFailed");
  Fields wider = service;
  auth::testing::SetField(&wider, "se", "2031-11-12T00:00:00Z");
  EXPECT_EQ(Said(Ask("GET", With(wider, "/sally/my-queue/messages"))), "403 AuthenticationFailed");
}

TEST_F(GatewayTest, KnowsNoOtherAccounts) {
  EXPECT_EQ(Said(Ask("GET", "/harry?comp=list")), "404 ResourceNotFound");
}

TEST_F(GatewayTest, ReadsThePoliciesOfTheQueueThatASasNames) {
  ASSERT_TRUE(queues_->CreateQueue({"sally", "my-queue"}, {}).ok());
  const std::string get = With(auth::testing::PolicySas(), "/sally/my-queue/messages");
  EXPECT_EQ(Said(Ask("GET", get)), "403 AuthenticationFailed");
  ASSERT_TRUE(operations::StoreAcl({"sally", "my-queue"},
                                   {{"readers", "2011-11-10", "2011-11-12", "rp"}}, stores_)
                  .ok());
  EXPECT_EQ(Ask("GET", get).status, 200);
  EXPECT_EQ(Said(Ask("POST", get, {}, kMessage)), "403 AuthorizationPermissionMismatch");
}

TEST_F(GatewayTest, HasTheSameHeadersInEveryReply) {
  const http::Headers headers = {{"x-ms-client-request-id", "mine"},
                                 {"x-ms-version", "2020-02-10"}};
  for (const http::Reply& reply :
       {Ask("GET", With(auth::testing::AccountSas(), "/sally?comp=list"), headers),
        Ask("GET", "/sally?comp=list", headers), Ask("GET", "/", headers),
        Ask("OPTIONS", "/sally", headers)}) {
    EXPECT_EQ(Header(reply, "x-ms-request-id").size(), 36u);
    EXPECT_EQ(Header(reply, "x-ms-client-request-id"), "mine");
    EXPECT_NE(Header(reply, "x-ms-version"), "(none)");
    EXPECT_EQ(Header(reply, "date"), "Fri, 11 Nov 2011 00:00:00 GMT");
  }
}

TEST_F(GatewayTest, TakesTheVersionOfTheHeaderThenOfTheSas) {
  const std::string list = With(auth::testing::AccountSas(), "/sally?comp=list");
  EXPECT_EQ(Header(Ask("GET", list), "x-ms-version"), "2025-05-05");
  EXPECT_EQ(Header(Ask("GET", list, {{"x-ms-version", "2018-03-28"}}), "x-ms-version"),
            "2018-03-28");
  const http::Reply none = Ask("GET", list, {{"x-ms-version", "latest"}});
  EXPECT_EQ(Said(none), "400 InvalidHeaderValue");
  EXPECT_THAT(none.body, HasSubstr("<HeaderValue>latest</HeaderValue>"));
}

// A new SDK names a version of the day on which it comes out, or one to come.
TEST_F(GatewayTest, TakesAnyVersionThatLooksLikeADay) {
  const std::string list = With(auth::testing::AccountSas(), "/sally?comp=list");
  for (const char* version : {"2018-03-29", "2026-10-06", "2099-01-01"}) {
    const http::Reply reply = Ask("GET", list, {{"x-ms-version", version}});
    EXPECT_EQ(reply.status, 200) << version;
    EXPECT_EQ(Header(reply, "x-ms-version"), version);
  }
}

TEST_F(GatewayTest, RepeatsWhatItHasReadOfARequestThatIsNoneAsAWhole) {
  http::Request head;
  head.method = "POST";
  head.target = "/sally/my-queue/messages";
  head.headers = {{"x-ms-version", "2018-03-28"}, {"x-ms-client-request-id", "mine"}};
  const http::Reply refused = gateway_->Refuse(413, head);
  EXPECT_EQ(Said(refused), "413 RequestBodyTooLarge");
  EXPECT_EQ(Header(refused, "x-ms-version"), "2018-03-28");
  EXPECT_EQ(Header(refused, "x-ms-client-request-id"), "mine");
  EXPECT_THAT(refused.body, HasSubstr("<MaxLimit>1048576</MaxLimit>"));
}

TEST_F(GatewayTest, RepeatsTheVersionInRefusalsToo) {
  const http::Headers asked = {{"x-ms-version", "2018-03-28"}};
  for (const std::string& target : {"/sally?comp=list", "/", "/sally?comp=none", "/bob?comp=list",
                                    "/sally/my-queue/messages?peekonly=x"}) {
    const http::Reply reply = Ask("GET", target, asked);
    EXPECT_GE(reply.status, 400) << target;
    EXPECT_EQ(Header(reply, "x-ms-version"), "2018-03-28") << target;
  }
  EXPECT_NE(Header(Ask("GET", "/sally?comp=list", {{"x-ms-version", "x"}}), "x-ms-version"), "x");
}

// A Service of Kubernetes has dots in its name, and so has any machine.
TEST_F(GatewayTest, TakesAHostForAnAccountOnlyIfThereIsSuchAnAccount) {
  const Fields account = auth::testing::AccountSas();
  for (const char* host : {"mesh-queue-gateway.ns.svc.cluster.local:10001", "host.example",
                           "127.0.0.1:10001", "localhost"}) {
    EXPECT_EQ(Ask("GET", With(account, "/sally?comp=list"), {{"Host", host}}).status, 200) << host;
  }
  EXPECT_EQ(Ask("PUT", With(account, "/my-queue"), {{"Host", "sally.queue.localhost:1"}}).status,
            201);
  EXPECT_EQ(Ask("PUT", With(account, "/sally/my-queue")).status, 204) << "it is the same queue";
  EXPECT_EQ(Ask("GET", With(account, "/?restype=service&comp=stats"),
                {{"Host", "sally-secondary.queue.localhost"}})
                .status,
            200);
}

TEST_F(GatewayTest, ListsByTheHostOfATargetThatHasOne) {
  const std::string list =
      With(auth::testing::AccountSas(), "http://sally.queue.localhost:1/?comp=list");
  const http::Reply listed = Ask("GET", list, {{"Host", "proxy:2"}});
  EXPECT_EQ(listed.status, 200);
  EXPECT_THAT(listed.body, HasSubstr("ServiceEndpoint=\"http://sally.queue.localhost:1/\""));
}

// Scanners ask so; an error of the store would alarm people.
TEST_F(GatewayTest, AllowsNoPageAnAccountThatIsNotThere) {
  const http::Headers asked = {{"Origin", "http://page"}, {"Access-Control-Request-Method", "GET"}};
  for (const std::string& target : {std::string("/bob/my-queue"), std::string("/a%20b~/c"),
                                    absl::StrCat("/", std::string(1000, 'a'))}) {
    EXPECT_EQ(Said(Ask("OPTIONS", target, asked)), "403 CorsPreflightFailure") << target;
  }
}

TEST_F(GatewayTest, AnswersABrowserBeforeItAuthenticates) {
  const http::Headers asked = {{"Origin", "http://page"}, {"Access-Control-Request-Method", "GET"}};
  EXPECT_EQ(Said(Ask("OPTIONS", "/sally/my-queue/messages", asked)), "403 CorsPreflightFailure");
  EXPECT_EQ(
      Ask("PUT", With(auth::testing::AccountSas(), "/sally?restype=service&comp=properties"), {},
          "<StorageServiceProperties><Cors><CorsRule>"
          "<AllowedOrigins>http://page</AllowedOrigins><AllowedMethods>GET</AllowedMethods>"
          "<MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>")
          .status,
      202);
  EXPECT_EQ(
      Header(Ask("OPTIONS", "/sally/my-queue/messages", asked), "Access-Control-Allow-Origin"),
      "http://page");
  // Also what is refused: without the header, the page sees no error at all.
  throttle::RequestThrottle strict({.per_account = 2}, &clock_);
  gateway_ = std::make_unique<Gateway>(&authenticator_, &strict, stores_);
  const std::string list = With(auth::testing::AccountSas(), "/sally?comp=list");
  for (const auto& [target, status] :
       std::vector<std::pair<std::string, int>>{{list, 200},
                                                {list + "&maxresults=x", 400},
                                                {list, 503},
                                                {"/sally?comp=none", 400},
                                                {"/sally?comp=list", 403}}) {
    const http::Reply reply = Ask("GET", target, {{"Origin", "http://page"}});
    EXPECT_EQ(reply.status, status) << target;
    EXPECT_EQ(Header(reply, "Access-Control-Allow-Origin"), "http://page") << target;
  }
  const http::Headers page = {{"Origin", "http://page"}, {"x-ms-version", "latest"}};
  EXPECT_EQ(Header(Ask("GET", list, page), "Access-Control-Allow-Origin"), "http://page");
  EXPECT_EQ(Header(Ask("GET", "/bob?comp=list", page), "Access-Control-Allow-Origin"), "(none)");
}

// As HTTP asks of a reply that refuses a verb.
TEST_F(GatewayTest, SaysWhichVerbsItAllowsInThePlaceOfARefusedOne) {
  const Fields account = auth::testing::AccountSas();
  const http::Reply unknown = Ask("PATCH", With(account, "/sally/my-queue"));
  EXPECT_EQ(Said(unknown), "405 UnsupportedHttpVerb");
  EXPECT_EQ(Header(unknown, "Allow"), "PUT, DELETE, OPTIONS");
  const http::Reply of_2008 = Ask("PUT", With(account, "/sally/my-queue/messages"), {}, kMessage);
  EXPECT_EQ(Said(of_2008), "405 UnsupportedHttpVerb");
  EXPECT_EQ(Header(of_2008, "Allow"), "GET, POST, DELETE, OPTIONS");
}

TEST_F(GatewayTest, ShowsAPageWhatEveryReplyHas) {
  EXPECT_EQ(
      Ask("PUT", With(auth::testing::AccountSas(), "/sally?restype=service&comp=properties"), {},
          "<StorageServiceProperties><Cors><CorsRule>"
          "<AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods>"
          "<ExposedHeaders>x-ms-*</ExposedHeaders>"
          "<MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>")
          .status,
      202);
  const http::Reply refused = Ask("GET", "/sally?comp=none", {{"Origin", "http://page"}});
  EXPECT_EQ(Header(refused, "Access-Control-Expose-Headers"),
            "x-ms-error-code,x-ms-request-id,x-ms-version");
}

TEST_F(GatewayTest, SaysWhyAnHttpRequestIsNone) {
  EXPECT_EQ(Said(gateway_->Refuse(400, {})), "400 InvalidInput");
  EXPECT_EQ(Said(gateway_->Refuse(413, {})), "413 RequestBodyTooLarge");
  EXPECT_EQ(Said(gateway_->Refuse(431, {})), "431 RequestHeadersTooLarge");
  EXPECT_EQ(Said(gateway_->Refuse(501, {})), "501 NotImplemented");
  EXPECT_EQ(Said(gateway_->Refuse(503, {})), "503 ServerBusy");
  EXPECT_EQ(Header(gateway_->Refuse(503, {}), "Retry-After"), "1");
}

// A caller with a token gets a key, signs with it, and hands the SAS to others.
class UserDelegationTest : public GatewayTest {
 protected:
  UserDelegationTest() {
    authenticator_with_oauth_.emplace(&accounts_, bearer_.get(), &clock_);
    gateway_ = std::make_unique<Gateway>(&*authenticator_with_oauth_, &throttle_, stores_);
    EXPECT_TRUE(queues_->CreateQueue({"sally", "my-queue"}, {}).ok());
  }

  http::Reply AskForKey(http::Headers headers, const std::string& body) {
    http::Request request;
    request.method = "POST";
    request.target = "/sally/?restype=service&comp=userdelegationkey";
    request.headers = std::move(headers);
    request.headers.emplace_back("Host", "localhost:1");
    request.headers.emplace_back("x-ms-version", "2026-04-06");
    request.body = body;
    request.peer_ip = "192.0.2.1";
    request.is_https = true;
    return gateway_->Handle(request);
  }

  static std::string Times(const std::string& start, const std::string& expiry) {
    return absl::StrCat("<KeyInfo><Start>", start, "</Start><Expiry>", expiry,
                        "</Expiry></KeyInfo>");
  }

  // A SAS that any SDK makes of the key.
  static Fields Sas(const protocol::XmlElement& key) {
    Fields sas = {{"sp", "rp"},
                  {"st", "2011-11-10T00:00:00Z"},
                  {"se", "2011-11-12T00:00:00Z"},
                  {"skoid", *key.TextOf("SignedOid")},
                  {"sktid", *key.TextOf("SignedTid")},
                  {"skt", *key.TextOf("SignedStart")},
                  {"ske", *key.TextOf("SignedExpiry")},
                  {"sks", *key.TextOf("SignedService")},
                  {"skv", *key.TextOf("SignedVersion")},
                  {"sip", "192.0.2.1"},
                  {"spr", "https,http"},
                  {"sv", "2026-04-06"}};
    const std::string text = absl::StrCat(
        "rp\n2011-11-10T00:00:00Z\n2011-11-12T00:00:00Z\n/queue/sally/my-queue\n", sas[3].second,
        "\n", sas[4].second, "\n", sas[5].second, "\n", sas[6].second, "\n", sas[7].second, "\n",
        sas[8].second, "\n\n\n192.0.2.1\nhttps,http\n2026-04-06");
    std::string bytes;
    EXPECT_TRUE(absl::Base64Unescape(*key.TextOf("Value"), &bytes));
    sas.emplace_back("sig", absl::Base64Escape(auth::HmacSha256(bytes, text)));
    return sas;
  }

  const std::string token_ =
      absl::StrCat("Bearer ", absl::WebSafeBase64Escape(R"({"alg":"RS256"})"), ".",
                   absl::WebSafeBase64Escape(
                       R"({"iss":"https://sts.windows.net/c3/","aud":"https://storage.azure.com",)"
                       R"("exp":1420969600,"oid":"1-1","tid":"2-2"})"),
                   ".c2ln");
  const std::string times_ = Times("2011-11-10T12:00:00Z", "2011-11-13T00:00:00Z");
  std::unique_ptr<auth::BearerVerifier> bearer_ = *auth::BearerVerifier::Open({}, &clock_);
  std::optional<auth::Authenticator> authenticator_with_oauth_;
};

TEST_F(UserDelegationTest, GivesAKeyThatSignsForAnyGatewayWithTheAccount) {
  const http::Reply reply = AskForKey({{"Authorization", token_}}, times_);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const auto key = protocol::ParseXml(reply.body);
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_THAT(reply.body,
              HasSubstr("<UserDelegationKey><SignedOid>1-1</SignedOid><SignedTid>2-2</SignedTid>"
                        "<SignedStart>2011-11-10T12:00:00Z</SignedStart>"
                        "<SignedExpiry>2011-11-13T00:00:00Z</SignedExpiry>"
                        "<SignedService>q</SignedService>"
                        "<SignedVersion>2026-04-06</SignedVersion><Value>"));
  const Fields sas = Sas(*key);
  gateway_ = std::make_unique<Gateway>(&authenticator_, &throttle_, stores_);  // another one
  const http::Reply got = Ask("GET", With(sas, "/sally/my-queue/messages"));
  EXPECT_EQ(got.status, 200) << got.body;
  EXPECT_EQ(Said(Ask("POST", With(sas, "/sally/my-queue/messages"), {}, kMessage)),
            "403 AuthorizationPermissionMismatch");
  EXPECT_EQ(Said(Ask("GET", With(sas, "/sally/other-queue/messages"))), "403 AuthenticationFailed");
  const Fields others = {{"sp", "rup"},
                         {"st", "2011-11-10T00:00:01Z"},
                         {"se", "2011-11-12T00:00:01Z"},
                         {"skoid", "1-2"},
                         {"sktid", "2-1"},
                         {"skt", "2011-11-10T12:00:01Z"},
                         {"ske", "2011-11-14T00:00:00Z"},
                         {"sks", "b"},
                         {"skv", "2026-04-07"},
                         {"skdutid", "2-2"},
                         {"sduoid", "1-1"},
                         {"sip", "192.0.2.1-192.0.2.9"},
                         {"spr", "https"},
                         {"sv", "2026-04-07"}};
  for (const auto& [name, value] : others) {
    Fields changed = sas;
    auth::testing::SetField(&changed, name, value);
    EXPECT_EQ(Said(Ask("GET", With(changed, "/sally/my-queue/messages"))),
              "403 AuthenticationFailed")
        << name;
  }
}

// The SDK for .NET leaves it out where its program names none.
TEST_F(UserDelegationTest, BeginsAKeyWithoutAStartNow) {
  for (const std::string& body :
       {std::string("<KeyInfo><Expiry>2011-11-13T00:00:00Z</Expiry></KeyInfo>"),
        Times("", "2011-11-13T00:00:00Z")}) {
    const http::Reply reply = AskForKey({{"Authorization", token_}}, body);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const auto key = protocol::ParseXml(reply.body);
    ASSERT_TRUE(key.ok()) << key.status();
    EXPECT_EQ(key->TextOf("SignedStart"), "2011-11-11T00:00:00Z");
    EXPECT_EQ(Ask("GET", With(Sas(*key), "/sally/my-queue/messages")).status, 200);
  }
}

TEST_F(UserDelegationTest, EndsASasWithItsKey) {
  const http::Reply reply =
      AskForKey({{"Authorization", token_}}, Times("2011-11-10T12:00:00Z", "2011-11-11T06:00:00Z"));
  const std::string get = With(Sas(*protocol::ParseXml(reply.body)), "/sally/my-queue/messages");
  EXPECT_EQ(Ask("GET", get).status, 200);
  clock_.StepWallClock(absl::Hours(7));
  const http::Reply late = Ask("GET", get);
  EXPECT_EQ(Said(late), "403 AuthenticationFailed");
  EXPECT_THAT(late.body, HasSubstr("the key of the SAS is not valid now"));
}

TEST_F(UserDelegationTest, GivesNoKeyWithoutATokenOrForTooLong) {
  EXPECT_EQ(AskForKey({}, times_).status, 401);
  const http::Headers token = {{"Authorization", token_}};
  for (const std::string& body :
       {std::string(), std::string("<KeyInfo/>"), Times("soon", "2011-11-13"),
        Times("2011-11-10", "2011-11-10"), Times("2011-11-01", "2011-11-10"),
        Times("2011-11-10", "2011-11-19")}) {
    EXPECT_EQ(Said(AskForKey(token, body)), "400 InvalidXmlDocument") << body;
  }
  const Fields account = auth::testing::AccountSas();
  EXPECT_EQ(Said(Ask("POST", With(account, "/sally/?restype=service&comp=userdelegationkey"), {},
                     times_)),
            "403 AuthorizationPermissionMismatch");
}

TEST_F(GatewayTest, CountsRequestsByOperationAndCode) {
  const Fields account = auth::testing::AccountSas();
  EXPECT_EQ(Ask("PUT", With(account, "/sally/my-queue")).status, 201);
  EXPECT_EQ(Ask("GET", With(account, "/sally/other/messages")).status, 404);
  EXPECT_EQ(Ask("GET", "/sally/my-queue/messages").status, 403);
  gateway_->Refuse(431, {});
  const std::string page = registry_.Scrape();
  for (const char* line :
       {"muster_gateway_requests_total{operation=\"create_queue\",code=\"201\"} 1",
        "muster_gateway_requests_total{operation=\"get_messages\",code=\"QueueNotFound\"} 1",
        "muster_gateway_requests_total{operation=\"none\",code=\"RequestHeadersTooLarge\"} 1",
        "muster_gateway_request_duration_seconds_count{operation=\"get_messages\"} 2",
        "muster_gateway_auth_failures_total{code=\"AuthenticationFailed\"} 1"}) {
    EXPECT_THAT(page, HasSubstr(line)) << page;
  }
}

TEST_F(GatewayTest, CountsWhatIsBeyondATarget) {
  throttle::RequestThrottle strict({.per_queue = 1}, &clock_);
  gateway_ = std::make_unique<Gateway>(&authenticator_, &strict, stores_, &registry_);
  const Fields account = auth::testing::AccountSas();
  EXPECT_EQ(Ask("PUT", With(account, "/sally/my-queue")).status, 201);
  EXPECT_EQ(Ask("PUT", With(account, "/sally/my-queue")).status, 503);
  EXPECT_THAT(registry_.Scrape(),
              HasSubstr("muster_gateway_throttled_total{queue=\"sally/my-queue\"} 1"));
}

}  // namespace
}  // namespace muster::queue_gateway
