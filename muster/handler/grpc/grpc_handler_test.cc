// What goes over the call, against real servers on loopback.
#include "muster/handler/grpc/grpc_handler.h"

#include <future>
#include <stop_token>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/handler/grpc/limits.h"
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
}  // namespace muster::handler::grpc
