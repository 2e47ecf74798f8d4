// SPDX-License-Identifier: Apache-2.0

// Connecting to a handler: its address, its readiness, and the reports about both.
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/handler/grpc/grpc_handler.h"
#include "muster/handler/health_troubles.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/handler/grpc/grpc_fixture.h"
#include "tests/fakes/os/no_more_threads.h"

namespace muster::handler::grpc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(GrpcHandlerTest, RefusesAnAddressThatIsNone) {
  options_.address = "nowhere";
  EXPECT_TRUE(absl::IsInvalidArgument(GrpcHandlerFactory(options_)(schema_).status()));
}

TEST_F(GrpcHandlerTest, CallsAnotherHostInPlaintextOnlyWhenAllowed) {
  const auto make = [&](const std::string& address) {
    options_.address = address;
    return GrpcHandlerFactory(options_)(schema_).status();
  };
  for (const char* local : {"localhost:7800", "127.0.0.1:7800", "[::1]:7800"}) {
    EXPECT_TRUE(make(local).ok()) << local;
  }
  for (const char* remote : {"bills:7800", "10.0.0.1:7800", "[fe80::1]:7800", "0.0.0.0:7800"}) {
    const absl::Status refused = make(remote);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << remote;
    EXPECT_THAT(refused.message(), AllOf(HasSubstr(remote), HasSubstr("--handler-tls-roots"),
                                         HasSubstr("--allow-plaintext")));
  }
  options_.allow_plaintext = true;
  EXPECT_TRUE(make("bills:7800").ok());
}

// The calls of the server, in turn: one that is refused, one that ends as it may, one that fails,
// one whose answer is none, and one that works.
TEST_F(GrpcHandlerTest, NotesWhyAnotherCallHasToFollow) {
  Serve([](Talk& talk) {
    if (talk.number() == 1) return ::grpc::Status(::grpc::StatusCode::INTERNAL, "not yet");
    talk.Begin();
    if (talk.number() == 5) return talk.ServeAll();
    v1::HandlerAnswer answer = OkAnswer(talk.Item());
    if (talk.number() == 2) return ::grpc::Status::OK;
    if (talk.number() == 3) return ::grpc::Status(::grpc::StatusCode::INTERNAL, "broken");
    answer.mutable_ok()->mutable_groups(0)->set_group("none of the job");
    talk.Answer(answer);
    talk.AwaitEnd();
    return ::grpc::Status::OK;
  });
  base::Mutex mu;
  std::vector<std::string> noted;
  options_.restarts = std::make_shared<handler::Restarts>();
  options_.restarts->Listen([&](handler::RestartReason reason) {
    base::MutexLock lock(&mu);
    noted.emplace_back(handler::RestartReasonName(reason));
  });
  while (Process().kind != Kind::kOk) {
  }
  base::MutexLock lock(&mu);
  EXPECT_THAT(noted, ElementsAre("not_started", "finished", "ended", "answer"));
}

TEST_F(GrpcHandlerTest, StopsWorkingForAJobThatTheHandlerRefuses) {
  Serve([](Talk& talk) {
    talk.Hello();
    return ::grpc::Status(::grpc::StatusCode::FAILED_PRECONDITION, "no column 'price'");
  });
  std::vector<std::string> refusals;
  UseFakeClock();  // the handler must not wait
  options_.on_refused = [&](const absl::Status& status) {
    refusals.emplace_back(status.message());
  };
  const handler::Outcome outcome = Process();
  EXPECT_EQ(outcome.kind, Kind::kDefer);
  EXPECT_GT(outcome.delay, absl::Seconds(20));
  EXPECT_THAT(outcome.why, HasSubstr("no column 'price'"));
  EXPECT_THAT(refusals, ElementsAre(HasSubstr("no column 'price'")));
}

TEST_F(GrpcHandlerTest, GivesNoItemToAHandlerOfAnotherVersion) {
  Serve([](Talk& talk) {
    talk.Hello();
    talk.Ready(1, "2");
    EXPECT_FALSE(talk.Next().has_value());
    return ::grpc::Status::OK;
  });
  options_.deadline = absl::Milliseconds(50);
  options_.first_hold_back = absl::Hours(1);
  options_.max_hold_back = absl::Hours(1);
  const handler::Outcome outcome = Process();
  EXPECT_EQ(outcome.kind, Kind::kDefer);
  EXPECT_THAT(outcome.why, AllOf(HasSubstr("has version 2"), HasSubstr("wants version 1")));
}

TEST_F(GrpcHandlerTest, CallsAnewAHandlerThatIsNotReadyInTime) {
  UseFakeClock();
  std::promise<void> called;
  Serve([&](Talk& talk) {
    if (talk.number() == 1) {
      called.set_value();
      talk.AwaitEnd();
      return ::grpc::Status::OK;
    }
    talk.Begin();
    return talk.ServeAll();
  });
  std::future<handler::Outcome> outcome = ProcessBeside();
  called.get_future().wait();
  clock_.AwaitSleepers(1);
  clock_.Advance(kReadyTimeout);
  EXPECT_EQ(outcome.get().kind, Kind::kOk);
  EXPECT_EQ(service_->calls(), 2);
}

TEST_F(GrpcHandlerTest, TakesAReadyThatSaysTooMuchForAFailure) {
  Serve([](Talk& talk) {
    talk.Hello();
    if (talk.number() == 1) {
      talk.Ready(/*concurrency=*/1001);
      talk.AwaitEnd();
      return ::grpc::Status::OK;
    }
    talk.Ready();
    return talk.ServeAll();
  });
  EXPECT_EQ(Process().kind, Kind::kOk);
  EXPECT_EQ(service_->calls(), 2);
}

TEST_F(GrpcHandlerTest, DefersItemsWhileNobodyAnswers) {
  Serve([](Talk& talk) { return talk.ServeAll(); });
  server_.reset();
  options_.deadline = absl::Milliseconds(50);
  options_.first_hold_back = absl::Hours(1);
  options_.max_hold_back = absl::Hours(1);
  const handler::Outcome outcome = Process();
  EXPECT_EQ(outcome.kind, Kind::kDefer);
  EXPECT_GT(outcome.delay, absl::Minutes(59));
  EXPECT_THAT(outcome.why, HasSubstr("cannot be reached"));
}

// The definition that named the server may be gone, and the server with it: the item is one for a
// process that has the new one.
TEST_F(GrpcHandlerTest, ReleasesAnItemThatWaitsForAServerWhenTheProcessDrains) {
  UseFakeClock();
  options_.deadline = absl::Hours(1);
  options_.first_hold_back = options_.max_hold_back = absl::Seconds(7);
  std::stop_source draining;
  options_.draining = draining.get_token();
  Serve([](Talk& talk) { return talk.ServeAll(); });
  server_.reset();
  std::future<handler::Outcome> outcome = ProcessBeside();
  AwaitAlarmIn(absl::Seconds(7));
  draining.request_stop();
  EXPECT_EQ(outcome.get().kind, Kind::kRelease);
}

TEST_F(GrpcHandlerTest, FinishesAnItemThatIsWithItsServerWhenTheProcessDrains) {
  std::stop_source draining;
  options_.draining = draining.get_token();
  Serve([&](Talk& talk) {
    talk.Begin();
    const std::string item = talk.Item();
    draining.request_stop();
    talk.Answer(OkAnswer(item));
    return talk.ServeAll();
  });
  EXPECT_EQ(Process().kind, Kind::kOk);
}

// Returns the logged failures, one for each line.
std::vector<std::string> FailuresIn(const base::LogCapture& log) {
  std::vector<std::string> failures;
  for (const std::string& line : log.lines()) {
    if (absl::StrContains(line, "handler server failed")) failures.push_back(line);
  }
  return failures;
}

TEST_F(GrpcHandlerTest, LogsATroubleOnceAMinuteUntilItChanges) {
  const base::LogCapture log;
  UseFakeClock();
  options_.deadline = absl::Hours(1);
  options_.first_hold_back = options_.max_hold_back = absl::Seconds(7);
  Serve([](Talk& talk) {
    talk.Hello();
    return ::grpc::Status(::grpc::StatusCode::INTERNAL,
                          talk.number() <= 10 ? "no rates are there" : "the disk is full");
  });
  std::future<handler::Outcome> outcome = ProcessBeside();
  for (int call = 1; call <= 11; ++call) {
    AwaitAlarmIn(absl::Seconds(7));
    // The tenth call comes after 63 s.
    EXPECT_EQ(FailuresIn(log).size(), call < 10 ? 1U : call == 10 ? 2U : 3U) << "call " << call;
    if (call < 11) clock_.Advance(absl::Seconds(7));
  }
  EXPECT_THAT(FailuresIn(log),
              ElementsAre(AllOf(HasSubstr("no rates"), HasSubstr("failures_in_a_row=1 ")),
                          AllOf(HasSubstr("no rates"), HasSubstr("failures_in_a_row=10 ")),
                          AllOf(HasSubstr("disk is full"), HasSubstr("failures_in_a_row=11 "))));
  stop_.request_stop();
  EXPECT_EQ(outcome.get().kind, Kind::kRelease);
}

TEST_F(GrpcHandlerTest, TellsWhenNobodyHasEverBeenReachedForTooLong) {
  UseFakeClock();
  options_.deadline = absl::Hours(1);
  options_.first_hold_back = options_.max_hold_back = absl::Seconds(7);
  std::promise<absl::Status> given_up;
  options_.on_no_server = [&](const absl::Status& why) { given_up.set_value(why); };
  Serve([](Talk& talk) { return talk.ServeAll(); });
  server_.reset();
  std::future<handler::Outcome> outcome = ProcessBeside();
  std::future<absl::Status> heard = given_up.get_future();
  for (const int seconds : {7, 7, 7, 7, 2}) {
    AwaitAlarmIn(absl::Seconds(seconds));
    EXPECT_FALSE(heard.wait_for(std::chrono::seconds(0)) == std::future_status::ready);
    clock_.Advance(absl::Seconds(seconds));
  }
  const absl::Status why = heard.get();
  EXPECT_TRUE(absl::IsUnavailable(why)) << why;
  EXPECT_THAT(why.message(), AllOf(HasSubstr(options_.address), HasSubstr("cannot be reached"),
                                   HasSubstr("; start it")));
  stop_.request_stop();
  EXPECT_EQ(outcome.get().kind, Kind::kRelease);
}

// The item was charged with each try, and no other item got a session any more.
TEST_F(GrpcHandlerTest, AProcessWithoutThreadsForTheCallSaysSoAndCallsAgain) {
  std::optional<os::NoMoreThreads> limit;
  std::vector<std::string> told;
  options_.server_patience = absl::ZeroDuration();
  options_.on_no_server = [&](const absl::Status& why) {
    told.emplace_back(why.message());
    limit.reset();
  };
  Serve([](Talk& talk) {
    talk.Begin();
    return talk.ServeAll();
  });
  limit.emplace();
  EXPECT_EQ(Process().kind, Kind::kOk);
  EXPECT_THAT(told, ElementsAre(AllOf(HasSubstr("cannot be called: no thread"),
                                      HasSubstr("raise its limits of threads"))));
}

TEST_F(GrpcHandlerTest, IsReachedByWhoeverSaysThatHeCannotConnectToSomethingElse) {
  UseFakeClock();
  options_.deadline = absl::Hours(1);
  options_.first_hold_back = options_.max_hold_back = absl::Seconds(40);
  bool is_given_up = false;
  options_.on_no_server = [&](const absl::Status&) { is_given_up = true; };
  Serve([](Talk& talk) {
    talk.Hello();
    return ::grpc::Status(::grpc::StatusCode::UNAVAILABLE, "failed to connect to the database");
  });
  std::future<handler::Outcome> outcome = ProcessBeside();
  for (int call = 1; call <= 3; ++call) {
    AwaitAlarmIn(absl::Seconds(40));
    clock_.Advance(absl::Seconds(40));
  }
  AwaitAlarmIn(absl::Seconds(40));
  EXPECT_FALSE(is_given_up);
  stop_.request_stop();
  EXPECT_EQ(outcome.get().kind, Kind::kRelease);
}

TEST_F(GrpcHandlerTest, TellsWhenOnlyAServerOfAnotherVersionIsThereForTooLong) {
  UseFakeClock();
  options_.deadline = absl::Hours(1);
  options_.first_hold_back = options_.max_hold_back = absl::Seconds(25);
  std::promise<absl::Status> given_up;
  options_.on_no_server = [&](const absl::Status& why) { given_up.set_value(why); };
  Serve([](Talk& talk) {
    talk.Hello();
    talk.Ready(1, "2");
    talk.AwaitEnd();
    return ::grpc::Status::OK;
  });
  std::future<handler::Outcome> outcome = ProcessBeside();
  std::future<absl::Status> heard = given_up.get_future();
  for (const int seconds : {25, 5}) {
    AwaitAlarmIn(absl::Seconds(seconds));
    EXPECT_FALSE(heard.wait_for(std::chrono::seconds(0)) == std::future_status::ready);
    clock_.Advance(absl::Seconds(seconds));
  }
  const absl::Status why = heard.get();
  EXPECT_TRUE(absl::IsUnavailable(why)) << why;
  EXPECT_EQ(why.message(), absl::StrCat("the handler at ", options_.address,
                                        " has version 2, but the job wants version 1; start a "
                                        "server of version 1 there"));
  stop_.request_stop();
  EXPECT_EQ(outcome.get().kind, Kind::kRelease);
}

TEST_F(GrpcHandlerTest, TellsWhenWhatAnswersIsNoHandlerForTooLong) {
  UseFakeClock();
  options_.deadline = absl::Hours(1);
  options_.first_hold_back = options_.max_hold_back = options_.server_patience;
  std::promise<absl::Status> given_up;
  options_.on_no_server = [&](const absl::Status& why) { given_up.set_value(why); };
  Serve([](Talk&) { return ::grpc::Status(::grpc::StatusCode::UNIMPLEMENTED, ""); });
  std::future<handler::Outcome> outcome = ProcessBeside();
  std::future<absl::Status> heard = given_up.get_future();
  AwaitAlarmIn(options_.server_patience);
  clock_.Advance(options_.server_patience);
  EXPECT_THAT(heard.get().message(), AllOf(HasSubstr("without muster.v1.HandlerService"),
                                           HasSubstr("start a server of version 1 there")));
  stop_.request_stop();
  EXPECT_EQ(outcome.get().kind, Kind::kRelease);
}

TEST_F(GrpcHandlerTest, CountsThePatienceForAnotherVersionFromItsFirstAnswer) {
  UseFakeClock();
  options_.deadline = absl::Hours(2);
  options_.first_hold_back = options_.max_hold_back = absl::Seconds(25);
  std::atomic<int> given_up = 0;
  options_.on_no_server = [&](const absl::Status&) { ++given_up; };
  Serve([](Talk& talk) {
    talk.Hello();
    const bool is_replaced = talk.number() > 1;
    talk.Ready(1, is_replaced ? "2" : "1");
    if (!is_replaced) talk.Answer(OkAnswer(talk.Item()));
    talk.Next();
    return ::grpc::Status::OK;
  });
  EXPECT_EQ(Process().kind, Kind::kOk);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(Process(8).kind, Kind::kDefer) << "the call ends instead of an answer";
  std::future<handler::Outcome> outcome = ProcessBeside(9);
  AwaitAlarmIn(absl::Seconds(25));
  clock_.Advance(absl::Seconds(25));
  for (const int seconds : {25, 5}) {
    AwaitAlarmIn(absl::Seconds(seconds));
    EXPECT_EQ(given_up, 0);
    clock_.Advance(absl::Seconds(seconds));
  }
  AwaitAlarmIn(absl::Seconds(25));
  EXPECT_EQ(given_up, 1);
  stop_.request_stop();
  EXPECT_EQ(outcome.get().kind, Kind::kRelease);
}

TEST_F(GrpcHandlerTest, TellsAnAddressWithoutAHostInTheSameWordsEachTime) {
  options_.address = "no-such-host.invalid:7800";
  options_.allow_plaintext = true;
  options_.deadline = absl::Milliseconds(50);
  options_.first_hold_back = options_.max_hold_back = absl::Hours(1);
  EXPECT_THAT(Process().why, AllOf(HasSubstr("cannot be reached"), Not(HasSubstr("qtype"))));
}

TEST_F(GrpcHandlerTest, TellsOfTroubleUntilTheHandlerIsReady) {
  options_.health = std::make_shared<handler::HealthTroubles>();
  options_.deadline = absl::Milliseconds(50);
  options_.max_hold_back = absl::ZeroDuration();
  std::atomic<int> version = 2;
  Serve([&](Talk& talk) {
    talk.Hello();
    talk.Ready(1, absl::StrCat(version.load()));
    return talk.ServeAll();
  });
  EXPECT_EQ(Process().kind, Kind::kDefer);
  EXPECT_THAT(options_.health->why(),
              AllOf(HasSubstr(options_.address), HasSubstr("has version 2")));
  version = 1;
  options_.deadline = absl::Hours(1);
  handler_ = nullptr;
  factory_ = nullptr;
  EXPECT_EQ(Process().kind, Kind::kOk);
  EXPECT_EQ(options_.health->why(), "");
}

// While there is no call, gRPC checks the state of its connections only every five seconds.
TEST_F(GrpcHandlerTest, TellsThatNobodyIsAtItsAddressBeforeThereIsAnItem) {
  options_.health = std::make_shared<handler::HealthTroubles>();
  Serve([](Talk& talk) { return talk.ServeAll(); });
  server_.reset();
  absl::StrReplaceAll({{"localhost", "127.0.0.1"}}, &options_.address);  // one address
  handler_ = MakeHandler();
  while (options_.health->why().empty()) base::LetOthersRun();
  EXPECT_THAT(options_.health->why(),
              AllOf(HasSubstr(options_.address), HasSubstr("cannot be connected to")));
  rpc::ServerOptions options;
  options.addresses = {options_.address};
  server_ = rpc::Server::Start(options, {{v1::HandlerService::service_full_name(), service_.get()}})
                .value();
  while (!options_.health->why().empty()) base::LetOthersRun();
  EXPECT_EQ(service_->calls(), 0) << "to connect is not to call";
}

}  // namespace
}  // namespace muster::handler::grpc
