// SPDX-License-Identifier: Apache-2.0

// What only streams with replicas answer. The leader of one has a message in hand until a replica
// has it, and refuses others meanwhile.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/nats/api_answer.h"
#include "muster/nats/jetstream.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::nats {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(10);

std::string Refusal(int code) {
  return absl::StrCat(R"({"error": {"code": 400, "err_code": )", code,
                      R"(, "description": "wrong last sequence"}})");
}

// Answers messages to work.a as a stream would: with `answers`, one after the other, and with the
// last of them from then on.
class AnsweringStream {
 public:
  AnsweringStream(const std::string& url, std::vector<std::string> answers)
      : answers_(std::move(answers)), connection_(Connection::Open(url, {}).value()) {
    subscription_ =
        connection_->Subscribe("work.a", [this](const Incoming& message) { Answer(message); })
            .value();
    EXPECT_TRUE(connection_->Flush(kCallTimeout).ok());
  }

  size_t messages() {
    base::MutexLock lock(&mu_);
    return messages_;
  }

 private:
  void Answer(const Incoming& message) {
    base::MutexLock lock(&mu_);
    const std::string& answer = answers_[std::min(messages_++, answers_.size() - 1)];
    EXPECT_TRUE(connection_->Publish({.subject = message.reply, .data = answer}).ok());
  }

  const std::vector<std::string> answers_;
  const std::unique_ptr<Connection> connection_;
  base::Mutex mu_;
  size_t messages_ ABSL_GUARDED_BY(mu_) = 0;
  std::unique_ptr<Connection::Subscription> subscription_;
};

class UndecidedMessageTest : public ::testing::Test {
 protected:
  absl::StatusOr<PubAck> Publish(absl::Duration timeout) {
    return JetStream(connection_.get(), timeout)
        .Publish(
            {.subject = "work.a", .headers = {{kExpectedLastSubjectSequence, "6"}}, .data = "x"});
  }

  const testing::NatsServer server_{testing::NatsServer::Programs().front(), "",
                                    testing::NatsServer::Persistence::kNone};
  const std::unique_ptr<Connection> connection_ = Connection::Open(server_.url(), {}).value();
};

TEST_F(UndecidedMessageTest, IsAwaitedAndWhatComesAfterItIsStored) {
  AnsweringStream stream(server_.url(),
                         {Refusal(kLastSequenceUndecided), Refusal(kLastSequenceUndecided),
                          R"({"stream": "work", "seq": 7})"});
  const absl::StatusOr<PubAck> stored = Publish(kCallTimeout);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->sequence, 7u);
  EXPECT_EQ(stream.messages(), 3u);
}

TEST_F(UndecidedMessageTest, IsAwaitedUntilItIsToldThatItWasFirst) {
  const AnsweringStream stream(server_.url(),
                               {Refusal(kLastSequenceUndecided), Refusal(kWrongLastSequence)});
  const absl::Status second = Publish(kCallTimeout).status();
  EXPECT_EQ(ErrorCodeOf(second), kWrongLastSequence) << second;
}

TEST_F(UndecidedMessageTest, IsAwaitedNoLongerThanACallMayTake) {
  const AnsweringStream stream(server_.url(), {Refusal(kLastSequenceUndecided)});
  const absl::Status given_up = Publish(absl::Seconds(2)).status();
  EXPECT_TRUE(absl::IsUnavailable(given_up)) << given_up;
  EXPECT_EQ(ErrorCodeOf(given_up), kLastSequenceUndecided);
}

}  // namespace
}  // namespace muster::nats
