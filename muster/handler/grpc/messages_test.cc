// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/grpc/messages.h"

#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/handler/grpc/grpc_handler.h"
#include "muster/handler/out_of_process.h"
#include "muster/handler/sample_item.h"

namespace muster::handler::grpc {
namespace {

using handler::Outcome;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MessagesTest : public ::testing::Test {
 protected:
  static handler::ItemContext Context() {
    handler::ItemContext context;
    context.batch = 1;
    context.index = 7;
    return context;
  }

  absl::StatusOr<Outcome> Decode() {
    results_.emplace(&schema_, item_.size());
    return DecodeAnswer(answer_, schema_, item_.get(), *results_);
  }
  // Returns the reason for the refusal of the answer.
  std::string Wrong(absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    const absl::StatusOr<Outcome> outcome = Decode();
    EXPECT_EQ(outcome.status().code(), code);
    return std::string(outcome.status().message());
  }
  void AddRow(const std::string& group, std::vector<std::string> keys,
              std::vector<std::string> measures) {
    v1::GroupPartial& partial = *answer_.mutable_ok()->add_groups();
    partial.set_group(group);
    v1::PartialRow& row = *partial.add_rows();
    row.mutable_keys()->Add(keys.begin(), keys.end());
    row.mutable_measures()->Add(measures.begin(), measures.end());
  }
  void Reject(int64_t line, const std::string& reason) {
    v1::Rejection& rejection = *answer_.mutable_ok()->add_rejected();
    rejection.set_line(line);
    rejection.set_reason(reason);
  }

  const handler::JobSchema schema_{
      .job = "bills",
      .revision = "abc",
      .columns = {"amount"},
      .groups = {{"g",
                  {"day"},
                  {{"revenue", handler::MeasureSchema::Type::kDecimal, 2},
                   {"count", handler::MeasureSchema::Type::kInt, 0}}}}};
  const handler::SampleItem item_{{{"a"}, {"b"}}, Context()};
  v1::HandlerAnswer answer_;
  std::optional<handler::Results> results_;
};

TEST_F(MessagesTest, AddsUpRowsAndCountsWhatIsNotRejected) {
  AddRow("g", {"mon"}, {"1.25", "1"});
  AddRow("g", {"mon"}, {"-0.25", "1"});
  Reject(3, "no price");
  ASSERT_TRUE(Decode().ok());
  EXPECT_EQ(results_->counted(), 1);
  EXPECT_EQ(results_->rejections().at(0).reason, "no price");
  const auto partials = results_->TakePartials();
  ASSERT_EQ(partials.at(0).rows.size(), 1u);
  EXPECT_EQ(partials[0].rows[0].measures[0].ToString(), "1.00");
}

TEST_F(MessagesTest, AnEmptyResultCountsEverything) {
  answer_.mutable_ok();
  ASSERT_TRUE(Decode().ok());
  EXPECT_EQ(results_->counted(), 2);
}

TEST_F(MessagesTest, NamesTheRowThatIsWrong) {
  AddRow("h", {"mon"}, {"1", "1"});
  EXPECT_THAT(Wrong(), HasSubstr("has no group 'h'; it has: g"));
  answer_.Clear();
  AddRow("g", {"mon"}, {"1.255", "1"});
  EXPECT_THAT(Wrong(absl::StatusCode::kOutOfRange), HasSubstr("groups.g[0]"));
  answer_.Clear();
  AddRow("g", {"mon"}, {"1", "one"});
  EXPECT_THAT(Wrong(absl::StatusCode::kOutOfRange), HasSubstr("groups.g[0]: count: "));
  answer_.Clear();
  AddRow("g", {"mon", "tue"}, {"1", "1"});
  EXPECT_THAT(Wrong(), HasSubstr("groups.g[0]"));
  answer_.Clear();
  AddRow("g", {"mon"}, {"1", "1", "x"});
  EXPECT_THAT(Wrong(), HasSubstr("groups.g[0]"));
  answer_.Clear();
  AddRow("g", {std::string(1025, 'k')}, {"1", "1"});
  EXPECT_THAT(Wrong(absl::StatusCode::kOutOfRange), HasSubstr("groups.g[0]"));
}

TEST_F(MessagesTest, NamesTheLineThatCannotBeRejected) {
  Reject(3, "no price");
  Reject(3, "no price");
  EXPECT_THAT(Wrong(), HasSubstr("rejected[1]: line: 3"));
  answer_.Clear();
  Reject(99, "?");
  EXPECT_THAT(Wrong(), HasSubstr("rejected[0]: line: 99"));
}

TEST_F(MessagesTest, CutsLongReasons) {
  Reject(2, std::string(1000, 'r'));
  ASSERT_TRUE(Decode().ok());
  EXPECT_LE(results_->rejections().at(0).reason.size(), handler::kMaxReasonBytes);
  answer_.mutable_dead()->set_why(std::string(1000, 'w'));
  EXPECT_LE(Decode()->why.size(), handler::kMaxWhyBytes);
}

TEST_F(MessagesTest, WantsAReasonAndADelayThatCanBe) {
  answer_.mutable_dead();
  EXPECT_THAT(Wrong(), HasSubstr("why"));
  answer_.mutable_retry();
  EXPECT_THAT(Wrong(), HasSubstr("why"));
  answer_.mutable_defer()->set_why("later");
  for (const absl::Duration after :
       {-absl::Nanoseconds(1), handler::kMaxRetryDelay + absl::Nanoseconds(1)}) {
    *answer_.mutable_defer()->mutable_after() = base::ToProto(after);
    EXPECT_THAT(Wrong(), HasSubstr("after"));
  }
  *answer_.mutable_defer()->mutable_after() = base::ToProto(handler::kMaxRetryDelay);
  EXPECT_EQ(Decode()->delay, handler::kMaxRetryDelay);
}

TEST_F(MessagesTest, LeavesOutWhatIsNotUtf8) {
  const handler::SampleItem item({{"\xff"}, {"b"}}, Context());
  handler::Results results(&schema_, item.size());
  const v1::WorkRequest request = EncodeItem(schema_, item.get(), results);
  ASSERT_EQ(request.item().transactions_size(), 1);
  EXPECT_EQ(request.item().transactions(0).line(), 3);
  EXPECT_EQ(results.rejections().at(0).line, 2);
  EXPECT_EQ(request.item().item(), "1/7");
}

TEST_F(MessagesTest, NamesTheTraceOfTheItem) {
  handler::ItemContext context = Context();
  context.trace = {0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 1, "a=b"};
  const handler::SampleItem item({{"b"}}, context);
  handler::Results results(&schema_, item.size());
  const v1::WorkRequest request = EncodeItem(schema_, item.get(), results);
  EXPECT_EQ(request.item().traceparent(),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  EXPECT_EQ(request.item().tracestate(), "a=b");
  EXPECT_EQ(EncodeItem(schema_, item_.get(), results).item().traceparent(), "");
}

TEST_F(MessagesTest, RefusesAReadyThatCannotBe) {
  v1::Ready ready;
  ready.set_version("1");
  ready.set_concurrency(1);
  EXPECT_TRUE(CheckReady(ready).ok());
  for (const int concurrency : {0, -1, kMaxConcurrency + 1}) {
    v1::Ready wrong = ready;
    wrong.set_concurrency(concurrency);
    EXPECT_THAT(std::string(CheckReady(wrong).message()), HasSubstr("ready.concurrency"));
  }
  for (const std::string& version : {std::string(), std::string(257, 'v')}) {
    v1::Ready wrong = ready;
    wrong.set_version(version);
    EXPECT_THAT(std::string(CheckReady(wrong).message()), HasSubstr("ready.version"));
  }
  ready.set_name(std::string(257, 'n'));
  EXPECT_THAT(std::string(CheckReady(ready).message()), HasSubstr("ready.name"));
}

class OutputMessagesTest : public MessagesTest {
 protected:
  void Give(int64_t line, std::vector<std::string> fields) {
    v1::OutputRecord& output = *answer_.mutable_ok()->add_outputs();
    output.set_line(line);
    output.mutable_fields()->Add(fields.begin(), fields.end());
  }
  absl::StatusOr<Outcome> DecodeWithOutputs() {
    with_outputs_ = schema_;
    with_outputs_.outputs = {{"note", base::OutputColumn::Type::kText, 0},
                             {"total", base::OutputColumn::Type::kDecimal, 2}};
    results_.emplace(&with_outputs_, item_.size());
    return DecodeAnswer(answer_, with_outputs_, item_.get(), *results_);
  }

  handler::JobSchema with_outputs_;
};

TEST_F(OutputMessagesTest, TakesRecordsOfLinesThatCount) {
  Give(item_[1].line(), {"b", "2"});
  Give(item_[0].line(), {"a", ""});
  const auto outcome = DecodeWithOutputs();
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_THAT(results_->TakeOutputs(),
              ElementsAre(base::OutputRecord{item_[0].line(), {"a", ""}},
                          base::OutputRecord{item_[1].line(), {"b", "2.00"}}));
}

TEST_F(OutputMessagesTest, RefusesARecordThatDoesNotFitOrWhoseLineIsRejected) {
  Give(item_[0].line(), {"a", "much"});
  EXPECT_EQ(DecodeWithOutputs().status(),
            absl::OutOfRangeError("outputs[0]: outputs: total: 'much' is not a decimal number"));
  answer_.Clear();
  Give(item_[0].line(), {"a"});
  EXPECT_EQ(DecodeWithOutputs().status(),
            absl::InvalidArgumentError("outputs[0]: has 1 field, and the job 2 columns"));
  answer_.Clear();
  Reject(item_[0].line(), "no price");
  Give(item_[0].line(), {"a", "1"});
  EXPECT_THAT(DecodeWithOutputs().status().message(), HasSubstr("or is rejected"));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeWithOutputs().status()));
}

TEST_F(OutputMessagesTest, RefusesRecordsOfAJobWithoutOutputs) {
  Give(item_[0].line(), {"a"});
  EXPECT_EQ(Wrong(), "outputs: the job has none");
}

}  // namespace
}  // namespace muster::handler::grpc
