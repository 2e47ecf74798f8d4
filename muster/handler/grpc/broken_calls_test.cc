// Servers that misbehave in every way that the contract names: they are late, say what they must
// not, or end the call.
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/handler/grpc/limits.h"
#include "tests/fakes/handler/grpc/grpc_fixture.h"

namespace muster::handler::grpc {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
    return ::grpc::Status::OK;
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
  wrong.mutable_ok()->mutable_groups(0)->mutable_rows(0)->set_measures(0, "0.5");
  *add("WrongMeasure", "groups.g[0]")->mutable_answer() = wrong;
  return mistakes;
}

INSTANTIATE_TEST_SUITE_P(Each, MistakenHandlerTest, ::testing::ValuesIn(Mistakes()),
                         [](const auto& mistake) { return mistake.param.name; });

// How the handler ends the call while it has an item.
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
    return ::grpc::Status(::grpc::StatusCode::INTERNAL, "a bug");
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

// Many workers, a handler that ends calls all the time: every item is answered or tried again.
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
}  // namespace muster::handler::grpc
