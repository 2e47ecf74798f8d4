// SPDX-License-Identifier: Apache-2.0
#include "muster/kubernetes/client.h"

#include <fstream>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/retry.h"
#include "muster/os/temp_dir.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/kubernetes/scripted_server.h"

namespace muster::kubernetes {

namespace {

using testing::Hang;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Respond;
using testing::RespondAndHang;
using ::testing::SizeIs;

const Address kPod{kPods, "home", "p-1", ""};
const Address kScale{kDeployments, "home", "processor", "scale"};

std::string Text(const absl::Status& status) { return std::string(status.message()); }

class KubernetesClientTest : public ::testing::Test {
 protected:
  // Returns the status of a call, and ends `waits` of the waits between its attempts.
  absl::Status Call(int waits) {
    absl::Status status;
    std::thread caller([&] { status = client_->Get(kScale).status(); });
    for (int i = 0; i < waits; ++i) {
      clock_.AwaitSleepers(1);
      clock_.Advance(clock_.NextDeadline() - clock_.Monotonic());
    }
    caller.join();
    return status;
  }

  base::FakeClock clock_;
  testing::ScriptedServer server_;
  std::unique_ptr<Client> client_ = server_.NewClient(&clock_);
};

TEST_F(KubernetesClientTest, AsksForOneObjectWithItsToken) {
  server_.Expect(Respond(200, R"({"metadata": {"name": "p-1"}})"));
  const auto pod = client_->Get(kPod);
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ((*pod)["metadata"]["name"], "p-1");
  const auto requests = server_.requests();
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_EQ(requests[0].line, "GET /api/v1/namespaces/home/pods/p-1");
  EXPECT_THAT(requests[0].headers, HasSubstr("Authorization: Bearer secret-token"));
}

TEST_F(KubernetesClientTest, SendsEachVerbAsTheApiHasIt) {
  for (int i = 0; i < 5; ++i) server_.Expect(Respond(200, "{}"));
  EXPECT_TRUE(client_->List({kPods, "home", "", ""}, "labelSelector=a%3Db").ok());
  EXPECT_TRUE(client_->Create({kPods, "home", "", ""}, {{"kind", "Pod"}}).ok());
  EXPECT_TRUE(client_->Update(kScale, {{"kind", "Scale"}}).ok());
  EXPECT_TRUE(client_->Patch(kPod, {{"a", nullptr}}).ok());
  EXPECT_TRUE(client_->Delete(kPod).ok());
  const auto requests = server_.requests();
  EXPECT_EQ(requests[0].line, "GET /api/v1/namespaces/home/pods?labelSelector=a%3Db");
  EXPECT_EQ(requests[1].line, "POST /api/v1/namespaces/home/pods");
  EXPECT_EQ(requests[1].body, R"({"kind":"Pod"})");
  EXPECT_EQ(requests[2].line, "PUT /apis/apps/v1/namespaces/home/deployments/processor/scale");
  EXPECT_EQ(requests[3].line, "PATCH /api/v1/namespaces/home/pods/p-1");
  EXPECT_EQ(requests[3].body, R"({"a":null})");
  EXPECT_THAT(requests[3].headers, HasSubstr("Content-Type: application/merge-patch+json"));
  EXPECT_EQ(requests[4].line, "DELETE /api/v1/namespaces/home/pods/p-1");
}

TEST_F(KubernetesClientTest, TriesAgainAfterAFaultOfTheServers) {
  server_.Expect(Respond(500, R"({"message": "etcdserver: leader changed"})"));
  server_.Expect(Respond(503, "upstream is away"));
  server_.Expect(Respond(200, "{}"));
  const absl::Duration began = clock_.Monotonic();
  EXPECT_TRUE(Call(2).ok());
  EXPECT_EQ(clock_.Monotonic() - began, kFirstBackoff * 3);
}

TEST_F(KubernetesClientTest, GivesUpAServerThatStaysAtFault) {
  for (int i = 0; i < kMaxAttempts; ++i) {
    server_.Expect(Respond(500, R"({"message": "etcdserver: no leader"})"));
  }
  const absl::Status status = Call(kMaxAttempts - 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Text(status), HasSubstr("get deployments/scale 'processor' in namespace 'home'"));
  EXPECT_THAT(Text(status), HasSubstr("no leader"));
  EXPECT_THAT(server_.requests(), SizeIs(kMaxAttempts));
}

TEST_F(KubernetesClientTest, WaitsAsLongAsItIsAskedTo) {
  server_.Expect(Respond(429, R"({"message": "too many requests"})", "Retry-After: 3\r\n"));
  server_.Expect(Respond(200, "{}"));
  absl::Status status;
  std::thread caller([&] { status = client_->Get(kScale).status(); });
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), absl::Seconds(3));
  clock_.Advance(absl::Seconds(3));
  caller.join();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(KubernetesClientTest, WaitsAsLongAsAServerAtFaultAsksTo) {
  server_.Expect(Respond(503, "{}", "Retry-After: 2\r\n"));
  server_.Expect(Respond(504, R"({"details": {"retryAfterSeconds": 1}})"));
  server_.Expect(Respond(503, "{}", "Retry-After: 60\r\n"));
  const absl::Duration began = clock_.Monotonic();
  EXPECT_EQ(Call(2).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(clock_.Monotonic() - began, absl::Seconds(3));
}

TEST_F(KubernetesClientTest, HeedsTheBodyWhereNoHeaderSaysHowLong) {
  server_.Expect(Respond(429, R"({"details": {"retryAfterSeconds": 2}})"));
  server_.Expect(Respond(200, "{}"));
  absl::Status status;
  std::thread caller([&] { status = client_->Get(kScale).status(); });
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), absl::Seconds(2));
  clock_.Advance(absl::Seconds(2));
  caller.join();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(KubernetesClientTest, AnswersAtOnceWhenItWouldWaitLongerThanACallMayTake) {
  server_.Expect(Respond(429, "{}", "Retry-After: 600\r\n"));
  const absl::Status status = Call(0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(base::RetryAfter(status), absl::Minutes(10));
  EXPECT_THAT(server_.requests(), SizeIs(1));
}

TEST_F(KubernetesClientTest, BoundsWhatAServerMayAskFor) {
  for (const char* after : {"99999999999999999999", "-1", "nan", "soon"}) {
    for (int i = 0; i < kMaxAttempts; ++i) {
      server_.Expect(Respond(429, "{}", absl::StrCat("Retry-After: ", after, "\r\n")));
    }
    const auto impatient = server_.NewClient(&clock_, {.max_attempts = 1});
    const absl::Status status = impatient->Get(kScale).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << after;
    EXPECT_GT(*base::RetryAfter(status), absl::ZeroDuration()) << after;
    EXPECT_LE(*base::RetryAfter(status), absl::Hours(1)) << after;
  }
}

TEST_F(KubernetesClientTest, EndsACallThatHangs) {
  const auto impatient =
      server_.NewClient(&clock_, {.attempt_limit = absl::Milliseconds(50), .max_attempts = 1});
  server_.Expect(Hang());
  const absl::Status status = impatient->Get(kScale).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Text(status), HasSubstr("no answer"));
}

TEST_F(KubernetesClientTest, EndsACallWhoseBodyHangs) {
  const auto impatient =
      server_.NewClient(&clock_, {.attempt_limit = absl::Milliseconds(50), .max_attempts = 1});
  server_.Expect(RespondAndHang(R"({"metadata": )"));
  EXPECT_EQ(impatient->Get(kScale).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(KubernetesClientTest, IsStoppedAtOnceThoughTheServerHangs) {
  server_.Expect(Hang());
  std::stop_source stop;
  absl::Status status;
  std::thread caller([&] { status = client_->Get(kScale, stop.get_token()).status(); });
  server_.Await(1);
  stop.request_stop();
  caller.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST_F(KubernetesClientTest, IsStoppedBetweenTwoAttempts) {
  server_.Expect(Respond(500, "{}"));
  std::stop_source stop;
  absl::Status status;
  std::thread caller([&] { status = client_->Get(kScale, stop.get_token()).status(); });
  clock_.AwaitSleepers(1);
  stop.request_stop();
  caller.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST_F(KubernetesClientTest, TakesGarbageForNoAnswer) {
  for (const char* garbage : {"", "<html>welcome</html>", "[1]", "17", "{\"a\":", "\xff\xfe"}) {
    server_.Expect(Respond(200, garbage));
    const auto once = server_.NewClient(&clock_, {.max_attempts = 1});
    const absl::Status status = once->Get(kScale).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << garbage;
    EXPECT_THAT(Text(status), HasSubstr("no JSON object")) << garbage;
  }
}

TEST_F(KubernetesClientTest, TakesHalfABodyForNoAnswer) {
  const auto once = server_.NewClient(&clock_, {.max_attempts = 1});
  server_.Expect({"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"metadata\": {}}"});
  EXPECT_EQ(once->Get(kScale).status().code(), absl::StatusCode::kUnavailable);
  server_.Expect({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n"});
  EXPECT_EQ(once->Get(kScale).status().code(), absl::StatusCode::kUnavailable);
  server_.Expect({"no HTTP at all"});
  EXPECT_EQ(once->Get(kScale).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(KubernetesClientTest, TakesNoMoreOfABodyThanItsBound) {
  const auto once = server_.NewClient(&clock_, {.max_attempts = 1});
  server_.Expect(Respond(200, std::string(kMaxAnswerBytes + 1, ' ')));
  const absl::Status status = once->Get(kScale).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Text(status), HasSubstr("too large"));
}

TEST_F(KubernetesClientTest, RepeatsOnlyTheFirstOfManyWordsOfAnError) {
  const std::string words(3 << 20, 'w');
  server_.Expect(Respond(404, absl::StrCat(R"({"message": ")", words, R"("})")));
  server_.Expect(Respond(422, std::string(6 << 20, 'x')));
  for (const absl::StatusCode code :
       {absl::StatusCode::kNotFound, absl::StatusCode::kInvalidArgument}) {
    const absl::Status status = client_->Get(kScale).status();
    EXPECT_EQ(status.code(), code);
    EXPECT_LT(status.message().size(), kMaxServerWords + 200);
  }
}

TEST_F(KubernetesClientTest, KeepsAServersWordsOnOneLine) {
  server_.Expect(Respond(404, R"({"message": "first\nlevel=error second\u0000"})"));
  const absl::Status status = client_->Get(kScale).status();
  EXPECT_THAT(Text(status), Not(HasSubstr("\n")));
  EXPECT_THAT(Text(status), HasSubstr("first level=error second"));
}

TEST_F(KubernetesClientTest, NamesTheVerbAndTheResourceThatARoleLacks) {
  server_.Expect(Respond(403, R"({"message": "deployments.apps is forbidden"})"));
  const absl::Status status = client_->Update(kScale, nlohmann::json::object()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Text(status), HasSubstr("verb 'update' on resource 'deployments/scale'"));
  EXPECT_THAT(Text(status), HasSubstr("deployments.apps is forbidden"));
}

TEST_F(KubernetesClientTest, TellsWhatEachCodeMeans) {
  const std::pair<int, absl::StatusCode> meanings[] = {
      {400, absl::StatusCode::kInvalidArgument}, {401, absl::StatusCode::kPermissionDenied},
      {404, absl::StatusCode::kNotFound},        {409, absl::StatusCode::kAborted},
      {410, absl::StatusCode::kOutOfRange},      {422, absl::StatusCode::kInvalidArgument},
  };
  for (const auto& [code, meaning] : meanings) {
    server_.Expect(Respond(code, "{}"));
    EXPECT_EQ(client_->Update(kScale, nlohmann::json::object()).status().code(), meaning) << code;
  }
  server_.Expect(Respond(409, "{}"));
  EXPECT_EQ(client_->Create({kPods, "home", "", ""}, nlohmann::json::object()).status().code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(KubernetesClientTest, FollowsNoRedirectWithItsToken) {
  testing::ScriptedServer elsewhere;
  elsewhere.Expect(Respond(200, "{}"));
  const auto once = server_.NewClient(&clock_, {.max_attempts = 1});
  server_.Expect(Respond(302, "", absl::StrCat("Location: ", elsewhere.url(), "/\r\n")));
  EXPECT_EQ(once->Get(kScale).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(elsewhere.requests(), SizeIs(0));
}

TEST_F(KubernetesClientTest, ShowsATokenInPlainTextToNoProxy) {
  testing::ScriptedServer proxy;
  setenv("http_proxy", proxy.url().c_str(), 1);
  server_.Expect(Respond(200, "{}"));
  EXPECT_TRUE(client_->Get(kPod).ok());
  unsetenv("http_proxy");
  EXPECT_THAT(proxy.requests(), SizeIs(0));
}

TEST_F(KubernetesClientTest, LetsNoNameLeadElsewhere) {
  for (const char* name : {"../secrets", "a/b", "a?b", "a b", ".", "-x", "\xc3\xa4"}) {
    EXPECT_EQ(client_->Get({kPods, "home", name, ""}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
    EXPECT_EQ(client_->Get({kPods, name, "p", ""}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
  EXPECT_THAT(server_.requests(), SizeIs(0));
}

TEST_F(KubernetesClientTest, ReadsATokenAgainThatWasRotated) {
  const os::TempDir dir;
  Access access = server_.access();
  access.token = {.file = dir / "token"};
  const auto client = Client::Open(access, &clock_).value();
  EXPECT_EQ(client->Get(kPod).status().code(), absl::StatusCode::kPermissionDenied);
  for (const char* token : {"first", "second"}) {
    std::ofstream(dir / "token") << token << "\n";
    server_.Expect(Respond(200, "{}"));
    EXPECT_TRUE(client->Get(kPod).ok());
  }
  const auto requests = server_.requests();
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_THAT(requests[0].headers, HasSubstr("Bearer first"));
  EXPECT_THAT(requests[1].headers, HasSubstr("Bearer second"));
}

// Else a client certificate that was renewed is not shown before the server closes the connection.
TEST_F(KubernetesClientTest, AsksNoMoreOnAConnectionWhoseIdentityWasRefused) {
  const auto once = server_.NewClient(&clock_, {.max_attempts = 1});
  server_.Expect({"HTTP/1.1 401 Said\r\nContent-Length: 2\r\n\r\n{}", /*hangs=*/true});
  server_.Expect(Respond(200, "{}"));
  EXPECT_EQ(once->Get(kPod).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(once->Get(kPod).ok());
}

TEST_F(KubernetesClientTest, SendsNoTokenThatWouldEndItsHeader) {
  const os::TempDir dir;
  Access access = server_.access();
  access.token = {.file = dir / "token"};
  const auto client = Client::Open(access, &clock_).value();
  for (const char* token : {"", "\n", "a\r\nX-Remote-User: admin", "a b", "\x01"}) {
    std::ofstream(dir / "token") << token;
    const absl::Status status = client->Get(kPod).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << token;
    EXPECT_THAT(Text(status), Not(HasSubstr("X-Remote-User")));
  }
  EXPECT_THAT(server_.requests(), SizeIs(0));
}

// In every failure: neither an error nor a line of the log repeats the token.
TEST_F(KubernetesClientTest, RepeatsItsTokenToNobody) {
  const base::LogCapture log;
  const auto once =
      server_.NewClient(&clock_, {.attempt_limit = absl::Milliseconds(50), .max_attempts = 1});
  for (const int code : {400, 401, 403, 404, 409, 410, 422, 429, 500, 302, 999}) {
    server_.Expect(Respond(code, R"({"message": "no"})"));
    const absl::Status status = once->Get(kScale).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.ToString(), Not(HasSubstr("secret-token"))) << code;
  }
  server_.Expect(Hang());
  EXPECT_THAT(once->Get(kScale).status().ToString(), Not(HasSubstr("secret-token")));
  for (const std::string& line : log.lines()) EXPECT_THAT(line, Not(HasSubstr("secret-token")));
}

TEST_F(KubernetesClientTest, SaysThatNobodyListens) {
  Access access;
  {
    const testing::ScriptedServer gone;
    access = gone.access();
  }
  const auto once = Client::Open(access, &clock_, {.max_attempts = 1}).value();
  EXPECT_EQ(once->Get(kPod).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace

}  // namespace muster::kubernetes
