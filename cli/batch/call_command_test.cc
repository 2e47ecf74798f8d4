// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/rpc/server.h"
#include "muster/v1/call_service.grpc.pb.h"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

class FakeCalls final : public v1::CallService::Service {
 public:
  grpc::Status Call(grpc::ServerContext*, const v1::CallRequest* request,
                    v1::CallResponse* response) override {
    called = *request;
    *response = answer;
    return status;
  }

  grpc::Status status;      // of all
  v1::CallRequest called;   // last
  v1::CallResponse answer;  // to all
};

class CallCommandTest : public ClientTest {
 protected:
  CallCommandTest() {
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    server_ =
        rpc::Server::Start(options, {{v1::CallService::service_full_name(), &calls_}}).value();
    calls_.answer.set_batch(7);
    calls_.answer.set_line(2);
  }

  Done Call(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "call");
    arguments.insert(arguments.end(), {"--server", server_->addresses().front()});
    return Run(std::move(arguments));
  }

  void AnswerRecords() {
    v1::CallAccepted* const accepted = calls_.answer.mutable_accepted();
    v1::OutputColumn* const name = accepted->add_columns();
    name->set_name("name");
    name->set_type(v1::OUTPUT_TYPE_TEXT);
    v1::OutputColumn* const score = accepted->add_columns();
    score->set_name("score");
    score->set_type(v1::OUTPUT_TYPE_INT);
    v1::OutputRecord* const record = accepted->add_records();
    record->add_fields("a, b");
    record->add_fields("7");
  }

  FakeCalls calls_;
  std::unique_ptr<rpc::Server> server_;
};

TEST_F(CallCommandTest, PrintsTheRecordsThatCameBack) {
  AnswerRecords();
  const Done csv = Call({"scores", "ann,1"});
  EXPECT_EQ(csv.code, kOk) << csv.err;
  EXPECT_EQ(csv.out, "name,score\n\"a, b\",7\n");
  EXPECT_EQ(calls_.called.job(), "scores");
  EXPECT_EQ(calls_.called.record(), "ann,1");
  EXPECT_EQ(Call({"scores", "ann,1", "--output", "json"}).out, "{\"name\":\"a, b\",\"score\":7}\n");
}

TEST_F(CallCommandTest, SendsColumnsByTheirNames) {
  AnswerRecords();
  const Done done =
      Call({"scores", "--field", "name=ann=x", "--field", "note=", "--request-id", "r1"});
  EXPECT_EQ(done.code, kOk) << done.err;
  const std::map<std::string, std::string> sent(calls_.called.fields().begin(),
                                                calls_.called.fields().end());
  EXPECT_EQ(sent, (std::map<std::string, std::string>{{"name", "ann=x"}, {"note", ""}}));
  EXPECT_EQ(calls_.called.request_id(), "r1");
  EXPECT_THAT(Call({"scores", "--field", "name"}).err, HasSubstr("'name' is no NAME=TEXT"));
  EXPECT_THAT(Call({"scores", "--field", "a=1", "--field", "a=2"}).err,
              HasSubstr("'a' is given twice"));
  EXPECT_EQ(Call({"scores", "ann,1", "--field", "name=ann"}).code, kUsage);
}

// A variable that was not set: each repetition of the command counted the record once more.
TEST_F(CallCommandTest, AnEmptyRequestIdIsNotTakenForNone) {
  const Done done = Call({"scores", "ann,1", "--request-id", ""});
  EXPECT_EQ(done.code, kUsage);
  EXPECT_THAT(done.err, HasSubstr("--request-id: an empty text names no submission"));
  EXPECT_EQ(calls_.called.job(), "") << "nothing is submitted";
}

TEST_F(CallCommandTest, WithoutARecordNoneIsSubmitted) {
  const Done done = Call({"scores"});
  EXPECT_EQ(done.code, kUsage);
  EXPECT_THAT(done.err, HasSubstr("RECORD or --field"));
  EXPECT_EQ(Call({"scores", ""}).code, kUsage) << "a variable that was not set";
  EXPECT_EQ(calls_.called.job(), "");
  EXPECT_EQ(Call({"scores", "--field", "name="}).code, kOk) << "it is meant to be empty";
}

TEST_F(CallCommandTest, SaysWhyARecordIsNotAccepted) {
  calls_.answer.mutable_rejected()->set_reason("no such customer");
  const Done rejected = Call({"scores", "ann,1"});
  EXPECT_EQ(rejected.code, kPartial);
  EXPECT_EQ(rejected.err, "muster: line 2 of batch 7 is rejected: no such customer\n");
  calls_.answer.mutable_dead_lettered()->set_cause("the handler died");
  const Done given_up = Call({"scores", "ann,1"});
  EXPECT_EQ(given_up.code, kPartial);
  EXPECT_EQ(given_up.err, "muster: line 2 of batch 7 is dead-lettered: the handler died\n");
}

TEST_F(CallCommandTest, SaysThatARecordMayBeCountedAfterTheTimeIsUp) {
  calls_.status = grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED,
                               "the record is not durable yet; it may be counted all the same");
  const Done nameless = Call({"shop", "a,1"});
  EXPECT_EQ(nameless.code, kTimedOut);
  EXPECT_THAT(nameless.err, HasSubstr("all the same; the command repeated counts once more: with "
                                      "a --request-id it would wait for the same record"));
  const Done named = Call({"shop", "a,1", "--request-id", "r1"});
  EXPECT_EQ(named.code, kTimedOut);
  EXPECT_THAT(named.err, HasSubstr("all the same; the same command goes on waiting"));
}

TEST_F(CallCommandTest, SaysThatARecordIsCountedWhoseJobHasNoOutputs) {
  calls_.answer.mutable_accepted();
  const Done done = Call({"scores", "ann,1"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(done.err, "muster: line 2 of batch 7 is counted; the job has no outputs\n");
}

}  // namespace
}  // namespace muster::cli
