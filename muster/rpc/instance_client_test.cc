// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/instance_client.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/queue_service.grpc.pb.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(8);

// Channels connect with the first call of a stub. Here none is made: the test answers itself.
class InstanceClientTest : public ::testing::Test {
 protected:
  using Client = InstanceClient<v1::QueueService>;

  // Asks, with these answers one after the other; NotFound and its message say where to ask next.
  Asked Ask(std::vector<absl::Status> answers, const AskOptions& options = {.timeout = kTimeout}) {
    timeouts_.clear();
    const auto call = [&](Client::Stub&, absl::Duration timeout) {
      timeouts_.push_back(timeout);
      if (answers.empty()) return absl::InternalError("asked too often");
      absl::Status answer = answers.front();
      answers.erase(answers.begin());
      if (absl::IsDeadlineExceeded(answer)) clock_.Advance(timeout);
      return answer;
    };
    const auto judge = [](const absl::Status& answer) {
      return Verdict{.ask_on = absl::IsNotFound(answer), .next = std::string(answer.message())};
    };
    return client_.Ask(options, call, judge).value();
  }

  static absl::Status Elsewhere(const std::string& next = "") { return absl::NotFoundError(next); }

  base::FakeClock clock_;
  std::vector<std::string> known_ = {"one:1", "two:2", "three:3"};
  Client client_{"keeper", [this] { return known_; }, {}, &clock_};
  std::vector<absl::Duration> timeouts_;  // that the calls had
};

TEST_F(InstanceClientTest, AsksOneAfterTheOtherUntilAnAnswerDecides) {
  const Asked asked = Ask({Elsewhere(), absl::OkStatus()});
  EXPECT_EQ(asked.answer, absl::OkStatus());
  EXPECT_EQ(asked.address, "two:2");
  EXPECT_EQ(asked.instances, 2);
  EXPECT_EQ(asked.silence, absl::OkStatus());
}

TEST_F(InstanceClientTest, SaysThatNoAnswerDecided) {
  const Asked asked = Ask({Elsewhere(), Elsewhere(), Elsewhere()});
  EXPECT_EQ(asked.answer, std::nullopt);
  EXPECT_EQ(asked.instances, 3);
  EXPECT_EQ(asked.silence, absl::OkStatus());
}

TEST_F(InstanceClientTest, TakesAnErrorForAnAnswer) {
  const Asked asked = Ask({absl::InvalidArgumentError("no such name")});
  EXPECT_EQ(asked.answer, absl::InvalidArgumentError("no such name"));
  EXPECT_EQ(asked.address, "one:1");
}

TEST_F(InstanceClientTest, BeginsWithTheOneThatIsWantedIfItIsKnown) {
  EXPECT_EQ(Ask({absl::OkStatus()}, {.first = "three:3"}).address, "three:3");
  EXPECT_EQ(Ask({absl::OkStatus()}, {.first = "four:4"}).address, "one:1");
}

TEST_F(InstanceClientTest, AsksNextWhereAnAnswerPoints) {
  EXPECT_EQ(Ask({Elsewhere("three:3"), absl::OkStatus()}).address, "three:3");
  EXPECT_EQ(Ask({Elsewhere("unheard:9"), absl::OkStatus()}).address, "unheard:9");
}

TEST_F(InstanceClientTest, DoesNotGoRoundInACircle) {
  known_ = {"one:1", "two:2"};
  const Asked asked = Ask({Elsewhere("two:2"), Elsewhere("one:1")});
  EXPECT_EQ(asked.answer, std::nullopt);
  EXPECT_EQ(asked.instances, 2);
}

TEST_F(InstanceClientTest, AsksSoManyAtMost) {
  const Asked asked = Ask({Elsewhere(), Elsewhere()}, {.most = 2, .timeout = kTimeout});
  EXPECT_EQ(asked.answer, std::nullopt);
  EXPECT_EQ(asked.instances, 2);
}

TEST_F(InstanceClientTest, LeavesHalfOfTheTimeToTheNextOne) {
  const absl::Status late = absl::DeadlineExceededError("no answer");
  const Asked asked = Ask({late, late, late});
  EXPECT_THAT(timeouts_, ElementsAre(kTimeout / 2, kTimeout / 4, kTimeout / 4));
  EXPECT_EQ(asked.answer, std::nullopt);
  EXPECT_EQ(asked.silence, absl::DeadlineExceededError("keeper one:1: no answer"));
}

TEST_F(InstanceClientTest, SparesOneThatHangsForAWhile) {
  EXPECT_EQ(Ask({absl::DeadlineExceededError("no answer"), absl::OkStatus()}).address, "two:2");
  const Asked spared = Ask({absl::OkStatus()});
  EXPECT_EQ(spared.address, "two:2");
  EXPECT_EQ(spared.instances, 2);
  EXPECT_THAT(std::string(spared.silence.message()), HasSubstr("keeper one:1: it let a call"));
  clock_.Advance(kBreakerPause);
  EXPECT_EQ(Ask({absl::OkStatus()}).address, "one:1");
}

TEST_F(InstanceClientTest, ForgetsAnInstanceThatIsKnownNoMore) {
  EXPECT_EQ(Ask({absl::DeadlineExceededError("no answer"), absl::OkStatus()}).address, "two:2");
  known_ = {"two:2"};
  EXPECT_EQ(Ask({absl::OkStatus()}).address, "two:2");
  known_ = {"one:1", "two:2"};
  EXPECT_EQ(Ask({absl::OkStatus()}).address, "one:1") << "it is new, and not spared";
}

TEST_F(InstanceClientTest, TakesWhatIsCancelledForSilence) {
  const Asked asked = Ask({absl::CancelledError("the server stops"), absl::OkStatus()});
  EXPECT_EQ(asked.address, "two:2");
  EXPECT_EQ(asked.silence, absl::UnavailableError("keeper one:1: the server stops"));
}

TEST_F(InstanceClientTest, PassesOverWhatIsNoAddress) {
  known_ = {"nonsense", "two:2"};
  const Asked asked = Ask({absl::OkStatus()});
  EXPECT_EQ(asked.address, "two:2");
  EXPECT_THAT(std::string(asked.silence.message()), HasSubstr("keeper nonsense: "));
}

TEST_F(InstanceClientTest, AsksNobodyWhereNobodyIsKnown) {
  known_.clear();
  EXPECT_EQ(Ask({}).instances, 0);
  Client unsure(
      "keeper", [] { return absl::PermissionDeniedError("not for you"); }, {}, &clock_);
  const auto asked = unsure.Ask(
      {}, [](Client::Stub&, absl::Duration) { return absl::OkStatus(); },
      [](const absl::Status&) { return Verdict(); });
  EXPECT_EQ(asked.status(), absl::PermissionDeniedError("not for you"));
}

}  // namespace
}  // namespace muster::rpc
