// Against real servers on loopback, which misbehave in every way that the contract names.
#include "muster/handler_grpc/grpc_handler.h"

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/handler_grpc/grpc_fixture.h"
#include "muster/handler_grpc/limits.h"
#include "muster/proto_time/proto_time.h"

namespace muster::handler_grpc {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
    return grpc::Status::OK;
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
  EXPECT_LE(proto_time::FromProto(items[0].deadline()), options_.deadline);
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
      handed_out.push_back(proto_time::FromProto(item.deadline_at()) -
                           proto_time::FromProto(item.deadline()));
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
    const grpc::Status status = talk.ServeAll();
    cancelled.set_value(talk.cancelled());
    return status;
  });
  EXPECT_EQ(Process().kind, Kind::kOk);
  handler_.reset();
  factory_ = nullptr;
  EXPECT_FALSE(cancelled.get_future().get());
}

TEST_F(GrpcHandlerTest, TriesAnItemAgainWhoseAnswerIsLateOnANewCall) {
  UseFakeClock();
  options_.deadline = absl::Seconds(5);
  std::promise<void> taken;
  Serve([&](Talk& talk) {
    talk.Begin();
    if (talk.number() > 1) return talk.ServeAll();
    talk.Item();
    taken.set_value();
    talk.AwaitEnd();
    EXPECT_TRUE(talk.cancelled());
    return grpc::Status::OK;
  });
  std::future<handler::Outcome> late = ProcessBeside();
  taken.get_future().wait();
  clock_.AwaitSleepers(1);
  clock_.Advance(options_.deadline);
  const handler::Outcome outcome = late.get();
  EXPECT_EQ(outcome.kind, Kind::kRetry);
  EXPECT_THAT(outcome.why, HasSubstr("gave no answer within 5s"));
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
    return grpc::Status::OK;
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

// What the handler says in place of an answer to 1/7, and why that is refused.
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
    return grpc::Status::OK;
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
  wrong.mutable_ok()->mutable_groups(0)->mutable_rows(0)->set_measures(0, "0.5");
  *add("WrongMeasure", "groups.g[0]")->mutable_answer() = wrong;
  return mistakes;
}

INSTANTIATE_TEST_SUITE_P(Each, MistakenHandlerTest, ::testing::ValuesIn(Mistakes()),
                         [](const auto& mistake) { return mistake.param.name; });

// How the handler ends the call while it has an item.
struct CallEnd {
  std::string name;
  grpc::Status status;
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
        CallEnd{"Ok", grpc::Status::OK, Kind::kDefer, "ended the call"},
        CallEnd{"Unavailable", {grpc::StatusCode::UNAVAILABLE, "moving"}, Kind::kDefer, "moving"},
        CallEnd{"Internal", {grpc::StatusCode::INTERNAL, "a bug"}, Kind::kRetry, "13: a bug"},
        CallEnd{
            "LateRefusal", {grpc::StatusCode::FAILED_PRECONDITION, "no"}, Kind::kRetry, "9: no"}),
    [](const auto& end) { return end.param.name; });

TEST_F(GrpcHandlerTest, StopsWorkingForAJobThatTheHandlerRefuses) {
  Serve([](Talk& talk) {
    talk.Hello();
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "no column 'price'");
  });
  std::vector<std::string> refusals;
  UseFakeClock();  // nothing is waited for
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
    return grpc::Status::OK;
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
      return grpc::Status::OK;
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
      return grpc::Status::OK;
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

TEST_F(GrpcHandlerTest, AbandonsAnItemThatNobodyWaitsForAndKeepsTheCall) {
  std::promise<void> taken;
  std::string abandoned;
  Serve([&](Talk& talk) {
    talk.Begin();
    const std::string item = talk.Item();
    taken.set_value();
    abandoned = talk.Next()->abandon().item();
    talk.Answer(OkAnswer(item));  // was under way: does no harm
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
    return grpc::Status::OK;
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

// 0.1 s, 0.2 s, 0.4 s … until an answer is accepted.
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
    return grpc::Status(grpc::StatusCode::INTERNAL, "a bug");
  });
  const auto await_hold_back = [&](int times) {
    std::future<handler::Outcome> outcome = ProcessBeside();
    while (clock_.NextDeadline() != clock_.Monotonic() + times * kFirstHoldBack) {
      std::this_thread::yield();
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

TEST_F(GrpcHandlerTest, PassesOnWhatTheHandlerSaysOfAnItem) {
  Serve([](Talk& talk) {
    talk.Begin();
    while (auto request = talk.Next()) {
      v1::HandlerAnswer answer;
      answer.set_item(request->item().item());
      if (answer.item() == "1/1") answer.mutable_retry()->set_why("no rates yet");
      if (answer.item() == "1/2") {
        answer.mutable_defer()->set_why("busy");
        *answer.mutable_defer()->mutable_after() = proto_time::ToProto(absl::Minutes(1));
      }
      if (answer.item() == "1/3") answer.mutable_dead()->set_why("never");
      talk.Answer(answer);
    }
    return grpc::Status::OK;
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

TEST_F(GrpcHandlerTest, TellsOfTroubleUntilTheHandlerIsReady) {
  options_.trouble = std::make_shared<handler::Trouble>();
  options_.deadline = absl::Milliseconds(50);
  options_.max_hold_back = absl::ZeroDuration();
  std::atomic<int> version = 2;
  Serve([&](Talk& talk) {
    talk.Hello();
    talk.Ready(1, absl::StrCat(version.load()));
    return talk.ServeAll();
  });
  EXPECT_EQ(Process().kind, Kind::kDefer);
  EXPECT_THAT(options_.trouble->why(),
              AllOf(HasSubstr(options_.address), HasSubstr("has version 2")));
  version = 1;
  options_.deadline = absl::Hours(1);
  handler_ = nullptr;
  factory_ = nullptr;
  EXPECT_EQ(Process().kind, Kind::kOk);
  EXPECT_EQ(options_.trouble->why(), "");
}

// While there is no call, gRPC looks only every five seconds at what its connections do.
TEST_F(GrpcHandlerTest, TellsThatNobodyIsAtItsAddressBeforeThereIsAnItem) {
  options_.trouble = std::make_shared<handler::Trouble>();
  Serve([](Talk& talk) { return talk.ServeAll(); });
  server_.reset();
  absl::StrReplaceAll({{"localhost", "127.0.0.1"}}, &options_.address);  // one address
  handler_ = MakeHandler();
  while (options_.trouble->why().empty()) std::this_thread::yield();
  EXPECT_THAT(options_.trouble->why(),
              AllOf(HasSubstr(options_.address), HasSubstr("cannot be connected to")));
  rpc::ServerOptions options;
  options.addresses = {options_.address};
  server_ = rpc::Server::Start(options, {{v1::HandlerService::service_full_name(), service_.get()}})
                .value();
  while (!options_.trouble->why().empty()) std::this_thread::yield();
  EXPECT_EQ(service_->calls(), 0) << "to connect is not to call";
}

// Many workers, a handler that ends calls all the time: every item is answered or tried again.
TEST_F(GrpcHandlerTest, LosesNoItemOfManyWorkersWhenCallsEnd) {
  Serve([](Talk& talk) {
    talk.Begin(/*concurrency=*/3);
    for (int items = 0; items < 5; ++items) {
      const std::string item = talk.Item();
      if (item.empty()) return grpc::Status::OK;
      talk.Answer(OkAnswer(item));
    }
    return grpc::Status::OK;
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
}  // namespace muster::handler_grpc
