// SPDX-License-Identifier: Apache-2.0

// The messages of a call, on real servers on loopback.

#include "muster/handler/grpc/grpc_handler.h"

#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "tests/fakes/base/killable_process.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/handler/grpc/grpc_fixture.h"

namespace muster::handler::grpc {

namespace {

using ::testing::ElementsAre;

TEST_F(GrpcHandlerTest, PutsItemsOnOneCallAndTakesTheirAnswers) {
  v1::Hello hello;
  std::vector<v1::HandlerItem> items;
  Serve([&](Talk& talk) {
    hello = talk.Hello();
    talk.Ready();
    while (auto request = talk.Next()) {
      items.push_back(request->item());
      talk.Answer(OkAnswer(request->item().item()));
    }
    return ::grpc::Status::OK;
  });
  options_.parameters = {{"RATES", "rates.csv"}};
  for (uint32_t index = 7; index < 10; ++index) {
    EXPECT_EQ(Process(index).kind, Kind::kOk);
    EXPECT_EQ(counted(), 2);
    EXPECT_THAT(keys(), ElementsAre("k"));
  }
  handler_.reset();
  factory_ = nullptr;
  server_->Drain(absl::InfiniteDuration());
  EXPECT_EQ(service_->calls(), 1);
  EXPECT_EQ(hello.protocol_version(), 1);
  EXPECT_EQ(hello.schema().job(), "bills");
  EXPECT_EQ(hello.parameters().at("RATES"), "rates.csv");
  EXPECT_EQ(hello.processor(), "processor-1");
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].item(), "1/7");
  EXPECT_EQ(items[0].attempt(), 1);
  EXPECT_LE(base::FromProto(items[0].deadline()), options_.deadline);
  EXPECT_EQ(items[0].transactions(1).line(), 3);
  EXPECT_THAT(items[0].transactions(1).fields(), ElementsAre("b"));
}

TEST_F(GrpcHandlerTest, HandsOutNoMoreThanTheHandlerTakesAtATime) {
  UseFakeClock();
  std::promise<void> both;
  std::promise<void> go_on;
  std::vector<absl::Time> handed_out;
  Serve([&](Talk& talk) {
    talk.Begin(/*concurrency=*/2);
    std::vector<std::string> names;
    const auto take = [&] {
      const v1::HandlerItem item = talk.Next()->item();
      names.push_back(item.item());
      handed_out.push_back(base::FromProto(item.deadline_at()) - base::FromProto(item.deadline()));
    };
    take();
    take();
    both.set_value();
    go_on.get_future().wait();
    talk.Answer(OkAnswer(names[1]));  // in any order
    take();
    talk.Answer(OkAnswer(names[2]));
    talk.Answer(OkAnswer(names[0]));
    return talk.ServeAll();
  });
  std::vector<std::future<handler::Outcome>> outcomes;
  for (uint32_t index = 0; index < 3; ++index) outcomes.push_back(ProcessBeside(index));
  both.get_future().wait();
  clock_.AwaitSleepers(3);
  clock_.Advance(absl::Seconds(1));
  go_on.set_value();
  for (auto& outcome : outcomes) EXPECT_EQ(outcome.get().kind, Kind::kOk);
  EXPECT_EQ(handed_out.at(2) - handed_out.at(0), absl::Seconds(1));
}

TEST_F(GrpcHandlerTest, EndsItsSideOfTheCallWhenNobodyWorksForTheJobAnyMore) {
  std::promise<bool> cancelled;
  Serve([&](Talk& talk) {
    talk.Begin();
    const ::grpc::Status status = talk.ServeAll();
    cancelled.set_value(talk.cancelled());
    return status;
  });
  EXPECT_EQ(Process().kind, Kind::kOk);
  handler_.reset();
  factory_ = nullptr;
  EXPECT_FALSE(cancelled.get_future().get());
}

TEST_F(GrpcHandlerTest, AbandonsAnItemThatNobodyWaitsForAndKeepsTheCall) {
  std::promise<void> taken;
  std::string abandoned;
  Serve([&](Talk& talk) {
    talk.Begin();
    const std::string item = talk.Item();
    taken.set_value();
    abandoned = talk.Next()->abandon().item();
    talk.Answer(OkAnswer(item));  // already under way when the item was abandoned: harmless
    return talk.ServeAll();
  });
  std::future<handler::Outcome> outcome = ProcessBeside(7);
  taken.get_future().wait();
  stop_.request_stop();
  EXPECT_EQ(outcome.get().kind, Kind::kRelease);
  stop_ = std::stop_source();
  EXPECT_EQ(Process(8).kind, Kind::kOk);
  EXPECT_EQ(Process(7).kind, Kind::kOk);
  EXPECT_EQ(service_->calls(), 1);
  EXPECT_EQ(abandoned, "1/7");
}

TEST_F(GrpcHandlerTest, ReleasesAnItemThatWaitsForTheCallWhenStopped) {
  UseFakeClock();
  std::promise<void> called;
  Serve([&](Talk& talk) {
    talk.Hello();
    called.set_value();
    talk.AwaitEnd();
    return ::grpc::Status::OK;
  });
  std::future<handler::Outcome> opening = ProcessBeside(1);
  called.get_future().wait();
  std::future<handler::Outcome> waiting = ProcessBeside(2);
  clock_.AwaitSleepers(2);
  stop_.request_stop();
  EXPECT_EQ(opening.get().kind, Kind::kRelease);
  EXPECT_EQ(waiting.get().kind, Kind::kRelease);
  EXPECT_EQ(Process(3).kind, Kind::kRelease);
}

TEST_F(GrpcHandlerTest, PassesOnWhatTheHandlerSaysOfAnItem) {
  Serve([](Talk& talk) {
    talk.Begin();
    while (auto request = talk.Next()) {
      v1::HandlerAnswer answer;
      answer.set_item(request->item().item());
      if (answer.item() == "1/1") answer.mutable_retry()->set_why("no rates yet");
      if (answer.item() == "1/2") {
        answer.mutable_defer()->set_why("busy");
        *answer.mutable_defer()->mutable_after() = base::ToProto(absl::Minutes(1));
      }
      if (answer.item() == "1/3") answer.mutable_dead()->set_why("never");
      talk.Answer(answer);
    }
    return ::grpc::Status::OK;
  });
  const handler::Outcome retry = Process(1), defer = Process(2), dead = Process(3);
  EXPECT_EQ(retry.kind, Kind::kRetry);
  EXPECT_EQ(retry.why, "no rates yet");
  EXPECT_EQ(defer.kind, Kind::kDefer);
  EXPECT_EQ(defer.delay, absl::Minutes(1));
  EXPECT_EQ(dead.kind, Kind::kDead);
  EXPECT_EQ(service_->calls(), 1);
}

TEST_F(GrpcHandlerTest, RejectsWhatIsNotUtf8AndSendsTheRest) {
  Serve([](Talk& talk) {
    talk.Begin();
    return talk.ServeAll();
  });
  EXPECT_EQ(Process(7, {{"a"}, {"\xff"}}).kind, Kind::kOk);
  EXPECT_EQ(counted(), 1);
  ASSERT_EQ(rejections().size(), 1u);
  EXPECT_EQ(rejections()[0].line, 3);
}

TEST_F(GrpcHandlerTest, GivesUpAnItemThatNoMessageHasRoomFor) {
  Serve([](Talk& talk) { return talk.ServeAll(); });
  const handler::Outcome outcome = Process(7, {{std::string(kMaxMessageBytes, 'x')}});
  EXPECT_EQ(outcome.kind, Kind::kDead);
  EXPECT_EQ(service_->calls(), 0);
}

TEST_F(GrpcHandlerTest, SendsAnItemThatJustFitsIntoAMessage) {
  Serve([](Talk& talk) {
    talk.Begin();
    return talk.ServeAll();
  });
  const handler::Outcome outcome = Process(7, {{std::string(kMaxMessageBytes - 512, 'x')}});
  EXPECT_EQ(outcome.kind, Kind::kOk) << outcome.why;
}

}  // namespace

// Servers that misbehave in every way that the contract names: they are late, send forbidden
// messages, or end the call.

namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(GrpcHandlerTest, TriesAnItemAgainWhoseAnswerIsLateOnANewCall) {
  UseFakeClock();
  options_.deadline = absl::Seconds(5);
  std::vector<std::string> restarts;
  options_.restarts = std::make_shared<handler::Restarts>();
  options_.restarts->Listen([&](handler::RestartReason reason) {
    restarts.emplace_back(handler::RestartReasonName(reason));
  });
  std::promise<void> taken;
  Serve([&](Talk& talk) {
    talk.Begin();
    if (talk.number() > 1) return talk.ServeAll();
    talk.Item();
    taken.set_value();
    talk.AwaitEnd();
    EXPECT_TRUE(talk.cancelled());
    return ::grpc::Status::OK;
  });
  std::future<handler::Outcome> late = ProcessBeside();
  taken.get_future().wait();
  clock_.AwaitSleepers(1);
  clock_.Advance(options_.deadline);
  const handler::Outcome outcome = late.get();
  EXPECT_EQ(outcome.kind, Kind::kRetry);
  EXPECT_THAT(outcome.why, HasSubstr("gave no answer within 5s"));
  EXPECT_THAT(restarts, ElementsAre("deadline"));
  EXPECT_EQ(Process().kind, Kind::kOk);
  EXPECT_EQ(service_->calls(), 2);
}

TEST_F(GrpcHandlerTest, DoesNotChargeItemsForAnotherOnesLateAnswer) {
  UseFakeClock();
  options_.deadline = absl::Seconds(5);
  std::promise<void> first, second;
  Serve([&](Talk& talk) {
    talk.Begin(/*concurrency=*/2);
    talk.Item();
    first.set_value();
    talk.Item();
    second.set_value();
    talk.AwaitEnd();
    return ::grpc::Status::OK;
  });
  std::future<handler::Outcome> late = ProcessBeside(1);
  first.get_future().wait();
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Seconds(2));
  std::future<handler::Outcome> other = ProcessBeside(2);
  second.get_future().wait();
  clock_.AwaitSleepers(2);
  clock_.Advance(absl::Seconds(3));
  EXPECT_EQ(late.get().kind, Kind::kRetry);
  const handler::Outcome outcome = other.get();
  EXPECT_EQ(outcome.kind, Kind::kDefer);
  EXPECT_THAT(outcome.why, HasSubstr("gave no answer"));
}

TEST_F(GrpcHandlerTest, KeepsACallWhoseAnswerHasAValueThatDoesNotFit) {
  Serve([&](Talk& talk) {
    talk.Begin();
    talk.Item();
    v1::WorkResponse response;
    *response.mutable_answer() = OkAnswer("1/7");
    response.mutable_answer()->mutable_ok()->mutable_groups(0)->mutable_rows(0)->set_measures(
        0, "NaN");
    talk.Say(response);
    return talk.ServeAll();
  });
  const handler::Outcome outcome = Process();
  EXPECT_EQ(outcome.kind, Kind::kUnfit);
  EXPECT_THAT(outcome.why, HasSubstr("'NaN' is not a decimal number"));
  EXPECT_EQ(Process().kind, Kind::kOk);
  EXPECT_EQ(service_->calls(), 1);
}

// A wrong message in place of the answer to 1/7, and the reason for its refusal.
struct Mistake {
  std::string name;
  v1::WorkResponse response;
  std::string why;
};

class MistakenHandlerTest : public GrpcHandlerTest,
                            public ::testing::WithParamInterface<Mistake> {};

TEST_P(MistakenHandlerTest, HasTheItemTriedAgainOnANewCall) {
  Serve([&](Talk& talk) {
    talk.Begin();
    if (talk.number() > 1) return talk.ServeAll();
    talk.Item();
    talk.Say(GetParam().response);
    talk.AwaitEnd();
    EXPECT_TRUE(talk.cancelled());
    return ::grpc::Status::OK;
  });
  const handler::Outcome outcome = Process();
  EXPECT_EQ(outcome.kind, Kind::kRetry);
  EXPECT_THAT(outcome.why, HasSubstr(GetParam().why));
  EXPECT_EQ(Process().kind, Kind::kOk);
  EXPECT_THAT(keys(), ElementsAre("2"));
}

std::vector<Mistake> Mistakes() {
  std::vector<Mistake> mistakes(1, {"NoStep", {}, "without a step"});
  const auto add = [&](const char* name, const char* why) {
    mistakes.push_back({name, {}, why});
    return &mistakes.back().response;
  };
  add("ReadyTwice", "twice")->mutable_ready();
  *add("AnotherItem", "'1/8', which it does not have")->mutable_answer() = OkAnswer("1/8");
  add("NoOutcome", "outcome: is none of")->mutable_answer()->set_item("1/7");
  v1::HandlerAnswer wrong = OkAnswer("1/7");
  wrong.mutable_ok()->mutable_groups(0)->mutable_rows(0)->add_measures("1");
  *add("OneMeasureTooMany", "groups.g[0]")->mutable_answer() = wrong;
  return mistakes;
}

INSTANTIATE_TEST_SUITE_P(Each, MistakenHandlerTest, ::testing::ValuesIn(Mistakes()),
                         [](const auto& mistake) { return mistake.param.name; });

// The ways in which the handler ends the call while it has an item.
struct CallEnd {
  std::string name;
  ::grpc::Status status;
  handler::Outcome::Kind outcome;
  std::string why;
};

class EndingHandlerTest : public GrpcHandlerTest, public ::testing::WithParamInterface<CallEnd> {};

TEST_P(EndingHandlerTest, ChargesTheItemOnlyWhereTheHandlerFailed) {
  Serve([&](Talk& talk) {
    talk.Begin();
    if (talk.number() > 1) return talk.ServeAll();
    talk.Item();
    return GetParam().status;
  });
  const handler::Outcome outcome = Process();
  EXPECT_EQ(outcome.kind, GetParam().outcome) << outcome.why;
  EXPECT_THAT(outcome.why, HasSubstr(GetParam().why));
  EXPECT_EQ(Process().kind, Kind::kOk);
}

INSTANTIATE_TEST_SUITE_P(
    Each, EndingHandlerTest,
    ::testing::Values(
        CallEnd{"Ok", ::grpc::Status::OK, Kind::kDefer, "ended the call"},
        CallEnd{"Unavailable", {::grpc::StatusCode::UNAVAILABLE, "moving"}, Kind::kDefer, "moving"},
        CallEnd{"Internal", {::grpc::StatusCode::INTERNAL, "a bug"}, Kind::kRetry, "13: a bug"},
        CallEnd{
            "LateRefusal", {::grpc::StatusCode::FAILED_PRECONDITION, "no"}, Kind::kRetry, "9: no"}),
    [](const auto& end) { return end.param.name; });

// The delays are 0.1 s, 0.2 s, 0.4 s … until an answer is accepted.
TEST_F(GrpcHandlerTest, HoldsCallsBackForLongerAfterEachFailureUntilAnAnswerIsAccepted) {
  UseFakeClock();
  options_.first_hold_back = kFirstHoldBack;
  Serve([](Talk& talk) {
    talk.Begin();
    if (talk.number() == 4) {
      talk.Answer(OkAnswer(talk.Item()));
      talk.Item();
    } else if (talk.number() < 6) {
      talk.Item();
    } else {
      return talk.ServeAll();
    }
    return ::grpc::Status(::grpc::StatusCode::INTERNAL, "a bug");
  });
  const auto await_hold_back = [&](int times) {
    std::future<handler::Outcome> outcome = ProcessBeside();
    while (clock_.NextDeadline() != clock_.Monotonic() + times * kFirstHoldBack) {
      base::LetOthersRun();
    }
    clock_.Advance(times * kFirstHoldBack);
    return outcome.get().kind;
  };
  EXPECT_EQ(Process().kind, Kind::kRetry);
  EXPECT_EQ(await_hold_back(1), Kind::kRetry);
  EXPECT_EQ(await_hold_back(2), Kind::kRetry);
  EXPECT_EQ(await_hold_back(4), Kind::kOk);
  EXPECT_EQ(Process().kind, Kind::kRetry);
  EXPECT_EQ(await_hold_back(1), Kind::kRetry);
  EXPECT_EQ(await_hold_back(2), Kind::kOk);
}

// Many workers, and a handler that keeps ending calls: every item is answered or tried again.
TEST_F(GrpcHandlerTest, LosesNoItemOfManyWorkersWhenCallsEnd) {
  Serve([](Talk& talk) {
    talk.Begin(/*concurrency=*/3);
    for (int items = 0; items < 5; ++items) {
      const std::string item = talk.Item();
      if (item.empty()) return ::grpc::Status::OK;
      talk.Answer(OkAnswer(item));
    }
    return ::grpc::Status::OK;
  });
  std::vector<std::thread> workers;
  for (uint32_t worker = 0; worker < 6; ++worker) {
    workers.emplace_back([this, worker, own = std::shared_ptr<handler::Handler>(MakeHandler())] {
      for (uint32_t item = 0; item < 20;) {
        const handler::Outcome outcome =
            ProcessWith(*own, handler::SampleItem({{"a"}}, Context(100 * worker + item)));
        EXPECT_THAT(outcome.kind, AnyOf(Kind::kOk, Kind::kDefer)) << outcome.why;
        item += outcome.kind == Kind::kOk ? 1 : 0;
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
}

}  // namespace

// A handler server is killed.

namespace {

using ::testing::HasSubstr;

// Sends its address, and the name of each item that it takes; answers none of them.
const base::testing::RegisteredProcess handler_server("handler", [](const std::string&) {
  TestHandlers service([](Talk& talk) {
    talk.Begin();
    while (auto request = talk.Next()) base::testing::Send(request->item().item());
    return ::grpc::Status::OK;
  });
  rpc::ServerOptions options;
  options.addresses = {"localhost:0"};
  const auto server =
      rpc::Server::Start(options, {{v1::HandlerService::service_full_name(), &service}}).value();
  base::testing::Send(server->addresses().front());
  base::testing::AwaitKill();
});

// gRPC reports this as Unavailable, too, but the handler did not send that status: the item may
// have killed it.
TEST_F(GrpcHandlerTest, TriesAnItemAgainAndChargesItWhenTheServerDiesWithIt) {
  base::testing::KillableProcess process("handler", "");
  options_.address = process.Receive().value();
  std::future<handler::Outcome> outcome = ProcessBeside();
  EXPECT_EQ(process.Receive(), "1/7");
  process.Kill();
  const handler::Outcome charged = outcome.get();
  EXPECT_EQ(charged.kind, Kind::kRetry);
  EXPECT_THAT(charged.why, HasSubstr("cannot be reached"));
}

}  // namespace

}  // namespace muster::handler::grpc
