// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/server.h"

#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "muster/rpc/limits.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/rpc/reflection_client.h"
#include "tests/fakes/rpc/rpc_fixture.h"

namespace muster::rpc {

namespace {

TEST(Call, RefusesWorkWhoseDeadlineHasPassed) {
  base::FakeClock clock;
  const absl::Time now = clock.Now();
  EXPECT_TRUE(RefuseIfLate(now + absl::Seconds(1), now).ok());
  EXPECT_TRUE(RefuseIfLate(absl::InfiniteFuture(), now).ok());
  EXPECT_EQ(RefuseIfLate(now, now).code(), absl::StatusCode::kDeadlineExceeded);
  const absl::Status late = RefuseIfLate(now - absl::Milliseconds(250), now);
  EXPECT_EQ(late.message(), "the call's deadline had passed 250ms before work on it could begin");
}

TEST(Call, WithoutDeadlineIsNeverLate) {
  const grpc::ServerContext context;
  bool worked = false;
  const grpc::Status status = Answer(context, [&worked] {
    worked = true;
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(worked);
}

// The deadline of a call without one is the end of gRPC's time, in the year 2262.
TEST(Call, IsNotWorkedOnOnceItsDeadlineHasPassed) {
  const grpc::ServerContext context;
  base::FakeClock clock;
  clock.StepWallClock(absl::Hours(24 * 365 * 300));
  bool worked = false;
  const grpc::Status status = Answer(
      context,
      [&worked] {
        worked = true;
        return absl::OkStatus();
      },
      &clock);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_FALSE(worked);
}

TEST(Call, AnswersTheStatusOfItsWork) {
  const grpc::ServerContext context;
  const grpc::Status status = Answer(context, [] { return absl::NotFoundError("no batch 7"); });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "no batch 7");
}

TEST(Call, AdvisesWhenToTryAgainWhatMayPass) {
  const auto advice = [](absl::Status status) { return RetryAfter(WithAdvice(std::move(status))); };
  EXPECT_EQ(advice(absl::UnavailableError("no store")), kRetryUnavailable);
  EXPECT_EQ(advice(absl::ResourceExhaustedError("disk full")), kRetryExhausted);
  EXPECT_EQ(advice(WithRetryAfter(absl::UnavailableError("busy"), absl::Minutes(1))),
            absl::Minutes(1));
  EXPECT_EQ(advice(absl::NotFoundError("no batch 7")), std::nullopt);
  EXPECT_EQ(advice(absl::OkStatus()), std::nullopt);
}

TEST(Call, SendsItsAdvice) {
  const grpc::ServerContext context;
  const grpc::Status status = Answer(context, [] { return absl::UnavailableError("no store"); });
  EXPECT_EQ(RetryAfter(FromGrpc(status)), kRetryUnavailable);
}

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ServerTest : public RpcTest {
 protected:
  // SERVING, NOT_SERVING, or the code of a refusal.
  std::string Health(const std::string& service) {
    CallContext context(kLong);
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    const grpc::Status status =
        grpc::health::v1::Health::NewStub(Connect())->Check(&context, request, &response);
    if (!status.ok()) return absl::StatusCodeToString(FromGrpc(status).code());
    return HealthCheckResponse::ServingStatus_Name(response.status());
  }

  // Requests a page of so many bytes; returns the error if it does not come.
  absl::Status GetPage(size_t bytes, const std::string& padding = "") {
    CallContext context(kLong);
    v1::ListQueuesRequest request;
    request.set_account(std::to_string(bytes));
    request.set_prefix(padding);
    v1::ListQueuesResponse response;
    return FromGrpc(v1::QueueService::NewStub(Connect())->ListQueues(&context, request, &response));
  }
};

TEST_F(ServerTest, AnswersOnThePortThatItPicked) {
  Start();
  EXPECT_THAT(server_->addresses(), ElementsAre(HasSubstr("localhost:")));
  EXPECT_NE(server_->addresses().front(), "localhost:0");
  EXPECT_EQ(GetStats(Connect()), absl::OkStatus());
}

TEST_F(ServerTest, ListensOnSeveralAddresses) {
  ServerOptions options;
  options.addresses = {"127.0.0.1:0", "localhost:0"};
  Start(options);
  for (const std::string& address : server_->addresses()) {
    EXPECT_EQ(GetStats(*OpenChannel(address)), absl::OkStatus()) << address;
  }
}

TEST_F(ServerTest, RefusesAPortThatIsTakenAndNamesIt) {
  Start();
  const std::unique_ptr<Server> first = std::move(server_);
  ServerOptions options;
  options.addresses = first->addresses();
  const base::LogCapture log;
  const absl::Status refused = TryStart(options);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr(first->addresses().front()));
  EXPECT_THAT(log.lines(), Not(Contains(HasSubstr("level=warning")))) << "gRPC says no more";
}

// A port that the system picked would otherwise be free between the two servers, and the system
// gives it to the next outgoing connection that needs one.
TEST_F(ServerTest, HandsItsPortToTheNextServerWithoutLettingGoOfIt) {
  Start();
  const std::unique_ptr<Server> first = std::move(server_);
  std::vector<ListenSockets> sockets = first->HandOver();
  ASSERT_EQ(sockets.size(), 1U);
  EXPECT_TRUE(absl::IsUnavailable(ListenOn(sockets[0].address).status())) << "the port is free";
  EXPECT_TRUE(first->HandOver().empty()) << "they are handed over once";
  const auto early = OpenChannel(first->addresses().front());
  ASSERT_TRUE(early.ok()) << early.status();
  std::future<absl::Status> waits =
      std::async(std::launch::async, [&early] { return GetStats(*early); });
  ServerOptions options;
  options.addresses = {"localhost:0"};
  auto second = Server::Start(options, {{v1::QueueService::service_full_name(), &queues_}},
                              std::move(sockets));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->addresses(), first->addresses());
  EXPECT_EQ(waits.get(), absl::OkStatus());
}

TEST_F(ServerTest, RefusesPlaintextWhereOthersCanReachIt) {
  ServerOptions options;
  options.addresses = {"0.0.0.0:0"};
  const absl::Status refused = TryStart(options);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("0.0.0.0:0 is neither localhost"));
  EXPECT_THAT(refused.message(), HasSubstr("--tls-cert and --tls-key"));
  EXPECT_THAT(refused.message(), HasSubstr("--allow-plaintext"));
}

TEST_F(ServerTest, TakesPlaintextThereWhenThatIsAllowedOnPurpose) {
  ServerOptions options;
  options.addresses = {"0.0.0.0:0"};
  options.allow_plaintext = true;
  Start(options);
  EXPECT_EQ(GetStats(Connect()), absl::OkStatus());
}

TEST_F(ServerTest, RefusesAnAddressThatIsNone) {
  ServerOptions options;
  options.addresses = {"localhost"};
  EXPECT_EQ(TryStart(options).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ServerTest, IsReadyWhenItIsToldSo) {
  Start();
  const std::string service = v1::QueueService::service_full_name();
  EXPECT_EQ(Health(""), "NOT_SERVING");
  EXPECT_EQ(Health(service), "NOT_SERVING");
  server_->SetReady(true);
  EXPECT_EQ(Health(""), "SERVING");
  EXPECT_EQ(Health(service), "SERVING");
  server_->SetServiceReady(service, false);
  EXPECT_EQ(Health(""), "SERVING");
  EXPECT_EQ(Health(service), "NOT_SERVING");
  EXPECT_EQ(Health("muster.v1.Nothing"), "NOT_FOUND");
}

TEST_F(ServerTest, TellsWatchersOfEachChangeOfHealth) {
  Start();
  grpc::ClientContext context;
  HealthCheckResponse response;
  const auto stub = grpc::health::v1::Health::NewStub(Connect());
  const auto watch = stub->Watch(&context, HealthCheckRequest());
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  server_->SetReady(true);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  server_->Drain(kLong);  // without grace the last answer may be cut off
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// Anyone may watch. Four megabytes of fields that nobody knows are 120 in memory, and 40 watches
// that kept them ended the process.
TEST_F(ServerTest, KeepsNothingOfWhatAWatcherHasSentBesides) {
  Start();
  HealthCheckRequest request;
  for (int i = 0; i < 100'000; ++i) {
    HealthCheckRequest::GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(2, "");
  }
  request.set_service(std::string(1'000'000, 'x'));
  const auto stub = grpc::health::v1::Health::NewStub(Connect());
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<HealthCheckResponse>>> watches;
  const auto watch = [&] {
    HealthCheckResponse response;
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    watches.push_back(stub->Watch(contexts.back().get(), request));
    ASSERT_TRUE(watches.back()->Read(&response));
  };
  watch();
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 10; ++i) watch();
  EXPECT_LT(mallinfo2().uordblks, before + (size_t{8} << 20)) << "40 MB were kept";
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& open : watches) open->Finish();
}

// A name that is too long for a trailer would end the call otherwise, and be written as it is.
TEST_F(ServerTest, AnswersAnyNameOfAService) {
  Start();
  EXPECT_EQ(Health(std::string(20'000, 'x')), "NOT_FOUND");
  EXPECT_EQ(Health("a\nb"), "NOT_FOUND");
}

TEST_F(ServerTest, LetsGoOfAWatcherThatHasLeft) {
  Start();
  const auto stub = grpc::health::v1::Health::NewStub(Connect());
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    HealthCheckResponse response;
    const auto watch = stub->Watch(&context, HealthCheckRequest());
    ASSERT_TRUE(watch->Read(&response));
    context.TryCancel();
    server_->SetReady(i % 2 == 0);
    while (watch->Read(&response)) continue;
    EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

// Returns the names of this process's threads.
std::vector<std::string> ThreadNames() {
  std::vector<std::string> names;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "comm");
    std::string name;
    if (std::getline(file, name)) names.push_back(name);
  }
  return names;
}

// gRPC's callback threads sleep for 100 ms in each 1.1 s, and calls on their connections wait as
// long.
TEST_F(ServerTest, LeavesNoConnectionToThreadsThatSleep) {
  Start();
  EXPECT_EQ(Health(""), "NOT_SERVING");
  EXPECT_EQ(GetStats(Connect()), absl::OkStatus());
  EXPECT_THAT(ThreadNames(), Contains(HasSubstr("grpc")));
  EXPECT_THAT(ThreadNames(), Not(Contains("nexting_thread")));
}

// A supervisor that asks for a server's health may end a server that does not answer.
TEST_F(ServerTest, TellsItsHealthWhileManyWatch) {
  Start();
  const auto stub = grpc::health::v1::Health::NewStub(Connect());
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> watch;
  };
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kMaxStreamsPerConnection - 1; ++i) {
    calls.push_back(std::make_unique<Call>());
    calls.back()->watch = stub->Watch(&calls.back()->context, HealthCheckRequest());
    HealthCheckResponse response;
    ASSERT_TRUE(calls.back()->watch->Read(&response));
  }
  server_->SetReady(true);
  EXPECT_EQ(Health(""), "SERVING");
  for (const auto& call : calls) {
    HealthCheckResponse response;
    ASSERT_TRUE(call->watch->Read(&response));
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  }
  server_->Drain(kLong);
  for (const auto& call : calls) {
    HealthCheckResponse response;
    while (call->watch->Read(&response)) continue;
    EXPECT_EQ(call->watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
}

TEST_F(ServerTest, DescribesAllItsServicesHealthIncluded) {
  Start();
  ReflectionClient reflection(Connect());
  std::vector<std::string> services = reflection.Services();
  std::sort(services.begin(), services.end());
  EXPECT_THAT(services,
              ElementsAre("grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection",
                          "muster.v1.QueueService"));
  for (const std::string& service : services) {
    EXPECT_THAT(reflection.FileOf(service), HasSubstr(".proto")) << service;
  }
}

// gRPC answers reflection with a thread for each call that is open.
TEST_F(ServerTest, AnswersOtherCallsWhileMoreReflectThanItHasThreads) {
  constexpr int kTooMany = 10;
  constexpr char kMethod[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  Start();
  grpc::CompletionQueue queue;
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
    grpc::Status ended;
  };
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return tag;
  };
  std::vector<std::unique_ptr<Call>> calls;
  std::unique_ptr<grpc::GenericStub> stub;
  int refused = 0;
  for (int i = 0; i < kMaxCallThreads + kTooMany; ++i) {
    if (i % kMaxStreamsPerConnection == 0) {
      grpc::ChannelArguments own;
      own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stub = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
          server_->addresses().front(), grpc::InsecureChannelCredentials(), own));
    }
    Call& call = *calls.emplace_back(std::make_unique<Call>());
    call.stream = stub->PrepareCall(&call.context, kMethod, &queue);
    call.stream->StartCall(nullptr);
    while (next() != nullptr) ++refused;
    call.stream->Finish(&call.ended, &call);
  }
  for (; refused < kTooMany; ++refused) next();
  EXPECT_EQ(GetStats(Connect()), absl::OkStatus());
  server_->Drain(absl::ZeroDuration());
  for (; refused < kMaxCallThreads + kTooMany; ++refused) next();
}

TEST_F(ServerTest, SendsErrorsWithTheirDetails) {
  Start();
  absl::Status status = absl::OutOfRangeError("wrong offset");
  status = WithReason(status, {"WRONG_OFFSET", {{"expected_offset", "4096"}}});
  status = WithViolations(status, {{"chunk.offset", "must be 4096"}});
  queues_.answer = WithRetryAfter(status, absl::Seconds(2));

  const absl::Status arrived = GetStats(Connect());
  EXPECT_EQ(arrived.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(arrived.message(), "wrong offset");
  EXPECT_EQ(Reason(arrived), (ErrorReason{"WRONG_OFFSET", {{"expected_offset", "4096"}}}));
  EXPECT_THAT(Violations(arrived), ElementsAre(FieldViolation{"chunk.offset", "must be 4096"}));
  EXPECT_EQ(RetryAfter(arrived), absl::Seconds(2));
}

TEST_F(ServerTest, SendsTheLargestErrorThatItMay) {
  Start();
  std::string message;
  while (message.size() + 3 <= kMaxStatusMessageBytes) message += "€";
  absl::Status status = absl::InvalidArgumentError(message);
  status = WithViolations(status, {{"field", std::string(kMaxStatusDetailBytes / 2 - 100, 'x')},
                                   {"field", std::string(kMaxStatusDetailBytes / 2 - 100, 'y')}});
  queues_.answer = status;
  const absl::Status arrived = GetStats(Connect());
  EXPECT_EQ(arrived.message(), message);
  EXPECT_EQ(Violations(arrived).size(), 2U);
}

TEST_F(ServerTest, RefusesAMessageThatIsTooLarge) {
  Start();
  EXPECT_EQ(GetPage(kMaxMessageBytes - 100), absl::OkStatus());
  EXPECT_EQ(GetPage(kMaxMessageBytes).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetPage(1, std::string(kMaxMessageBytes, 'x')).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(ServerTest, RefusesACallWithTooMuchMetadataAndServesOthers) {
  Start();
  const std::shared_ptr<grpc::Channel> channel = Connect();
  const auto call = [&channel](size_t bytes) {
    CallContext context(kLong);
    context.set_wait_for_ready(true);
    context.AddMetadata("padding", std::string(bytes, 'x'));
    v1::GetQueueStatsResponse response;
    return FromGrpc(v1::QueueService::NewStub(channel)->GetQueueStats(&context, {}, &response));
  };
  EXPECT_EQ(call(kMaxMetadataBytes - 1000), absl::OkStatus());
  const absl::Status refused = call(kMaxMetadataBytes);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  // gRPC closes the connection of a call that it refuses so; another call may be on it.
  absl::Status next = call(0);
  while (absl::IsUnavailable(next)) next = call(0);
  EXPECT_EQ(next, absl::OkStatus());
}

// The call has waited for a thread until its caller gave up.
TEST_F(ServerTest, BeginsNoWorkForACallWhoseDeadlineHasPassed) {
  base::FakeClock late;
  late.StepWallClock(absl::Now() + 2 * kLong - late.Now());
  queues_.clock = &late;
  Start();
  const absl::Status refused = GetStats(Connect());
  EXPECT_TRUE(absl::IsDeadlineExceeded(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("before work on it could begin"));
  EXPECT_EQ(queues_.stats_calls(), 0);
}

TEST_F(ServerTest, SaysWhenToAskAgainForServicesThatAreStillToCome) {
  ServerOptions options;
  options.addresses = {"localhost:0"};
  options.otherwise = [] { return absl::UnavailableError("it is starting"); };
  auto started = Server::Start(options, {});
  ASSERT_TRUE(started.ok()) << started.status();
  server_ = *std::move(started);
  const absl::Status early = GetStats(Connect());
  EXPECT_TRUE(absl::IsUnavailable(early)) << early;
  EXPECT_EQ(early.message(), "it is starting");
  EXPECT_EQ(RetryAfter(early), kRetryUnavailable);
}

TEST_F(ServerTest, LeavesACallWhoseDeadlinePasses) {
  Start();
  CallContext context(absl::Milliseconds(50));
  v1::PurgePoisonResponse response;
  const grpc::Status status =
      v1::QueueService::NewStub(Connect())->PurgePoison(&context, {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

class DrainTest : public RpcTest {
 protected:
  // Makes a call that runs until the test lets it go. Returns once its service has begun.
  std::future<absl::Status> CallThatRuns() {
    auto call = std::async(std::launch::async, [channel = Connect()] {
      CallContext context(kLong);
      v1::PurgePoisonResponse response;
      return FromGrpc(v1::QueueService::NewStub(channel)->PurgePoison(&context, {}, &response));
    });
    queues_.AwaitPurge();
    return call;
  }
};

TEST_F(DrainTest, LetsARunningCallFinishAndRefusesNewOnes) {
  Start();
  std::future<absl::Status> running = CallThatRuns();
  std::future<void> drain = std::async(std::launch::async, [&] { server_->Drain(kLong); });
  // Calls that come before the drain begins are still answered. When it begins, gRPC may cancel a
  // call.
  absl::Status refused;
  while (!absl::IsUnavailable(refused)) {
    refused = GetStats(Connect());
    EXPECT_TRUE(refused.ok() || absl::IsUnavailable(refused) || absl::IsCancelled(refused))
        << refused;
  }
  queues_.LetPurgeGo();
  drain.get();
  EXPECT_EQ(running.get(), absl::OkStatus());
}

TEST_F(DrainTest, CancelsWhatIsNotDoneWithinItsGrace) {
  Start();
  std::future<absl::Status> running = CallThatRuns();
  server_->Drain(absl::ZeroDuration());
  const absl::Status ended = running.get();
  EXPECT_TRUE(absl::IsCancelled(ended) || absl::IsUnavailable(ended)) << ended;
}

TEST_F(DrainTest, TwiceIsFine) {
  Start();
  server_->Drain(kLong);
  server_->Drain(absl::InfiniteDuration());
  server_.reset();
}

TEST_F(DrainTest, WaitsForOneThatHasBegun) {
  Start();
  std::future<absl::Status> running = CallThatRuns();
  std::future<void> first =
      std::async(std::launch::async, [&] { server_->Drain(absl::InfiniteDuration()); });
  std::future<void> second = std::async(std::launch::async, [&] { server_->Drain(kLong); });
  queues_.LetPurgeGo();
  first.get();
  second.get();
  EXPECT_EQ(running.get(), absl::OkStatus());
}

}  // namespace

}  // namespace muster::rpc
