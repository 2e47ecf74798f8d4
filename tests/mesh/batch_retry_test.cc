// Rejections are retried as a new batch, each once.
#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/input/format.h"
#include "tests/mesh/batch_service_fixture.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Rejects each line whose key begins with "bad", until it is mended.
class PickyHandler final : public handler::Handler {
 public:
  explicit PickyHandler(const std::atomic<bool>* mended) : mended_(*mended) {}

  handler::Outcome Process(const handler::WorkItem& item, handler::Results& results) override {
    for (const handler::Transaction& line : item.transactions()) {
      const std::string key(line.fields()[0]);
      if (absl::StartsWith(key, "bad") && !mended_) {
        results.Reject(line, absl::StrCat("no key like ", key));
      } else {
        results.Count(line, {{handler::Group{0}, {key}, {base::Decimal::FromInt(1)}}});
      }
    }
    return handler::Outcome::Ok();
  }

 private:
  const std::atomic<bool>& mended_;
};

class BatchRetryTest : public BatchServiceTest {
 protected:
  BatchRetryTest() {
    StartProcessor(queues_.get(), [this] { return std::make_unique<PickyHandler>(&mended_); });
  }

  // Lines 2, 3, 4 …, of which each one with `bad` is rejected: "bad2" at line 2, say.
  static std::string Lines(int lines, const std::vector<int>& bad) {
    std::string text = "key,other\n";
    for (int line = 2; line < lines + 2; ++line) {
      const bool is_bad = std::find(bad.begin(), bad.end(), line) != bad.end();
      absl::StrAppend(&text, is_bad ? absl::StrCat("bad", line) : "good", ",x\n");
    }
    return text;
  }

  // The number of the batch, once it is over.
  uint64_t SubmitAndWatch(const std::string& request_id, const std::string& text) {
    const auto submitted = Submit(request_id, text);
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return Complete(submitted->batch());
  }
  uint64_t Complete(uint64_t batch) {
    const auto last = Watch(batch);
    EXPECT_TRUE(last.ok()) << last.status();
    EXPECT_TRUE(last->complete());
    return batch;
  }
  v1::BatchStatus Status(uint64_t batch) {
    rpc::CallContext context;
    v1::GetBatchRequest request;
    request.set_batch(batch);
    v1::GetBatchResponse response;
    EXPECT_TRUE(stub_->GetBatch(&context, request, &response).ok());
    return response.status();
  }

  // No lines: all.
  absl::StatusOr<v1::RetryRejectionsResponse> Retry(uint64_t batch,
                                                    const std::vector<int64_t>& lines = {}) {
    rpc::CallContext context;
    v1::RetryRejectionsRequest request;
    request.set_batch(batch);
    request.set_all(lines.empty());
    request.mutable_lines()->Add(lines.begin(), lines.end());
    v1::RetryRejectionsResponse response;
    MUSTER_RETURN_IF_ERROR(rpc::FromGrpc(stub_->RetryRejections(&context, request, &response)));
    return response;
  }
  // The batch of a retry that has `transactions`, in one batch.
  uint64_t RetryOf(uint64_t batch, int64_t transactions, const std::vector<int64_t>& lines = {}) {
    const auto response = Retry(batch, lines);
    EXPECT_TRUE(response.ok()) << response.status();
    if (!response.ok() || response->retries_size() != 1) return 0;
    EXPECT_EQ(response->retries(0).transactions(), transactions);
    EXPECT_FALSE(response->more());
    return response->retries(0).batch();
  }

  // What the batches count under each key, together.
  std::map<std::string, std::string> Sums(const std::vector<uint64_t>& batches) {
    const auto reader = report_->Read().value();
    std::map<std::string, base::Decimal> sums;
    for (const uint64_t batch : batches) {
      const absl::Status read =
          reader->ForEachRow(batch, "by_key", [&sums](const report::GroupRow& row) {
            base::Decimal& sum = sums[row.keys[0]];
            sum = base::Decimal::Add(sum, row.measures[0]).value();
          });
      EXPECT_TRUE(read.ok()) << read;
    }
    std::map<std::string, std::string> texts;
    for (const auto& [key, sum] : sums) texts[key] = sum.ToString();
    return texts;
  }

  // "2 was 7: why": the rejections of a batch that is a retry; "7 in 3": of one that was retried.
  std::vector<std::string> Rejections(uint64_t batch) {
    std::vector<std::string> texts;
    const absl::Status read = report_->Read().value()->ForEachRejection(
        batch, 0, 1000, [&texts](const report::RejectionRow& row) {
          std::string text = absl::StrCat(row.line);
          if (row.retry_of_line != 0) absl::StrAppend(&text, " was ", row.retry_of_line);
          if (row.retried_in != 0) absl::StrAppend(&text, " in ", row.retried_in);
          texts.push_back(absl::StrCat(text, ": ", row.reason));
        });
    EXPECT_TRUE(read.ok()) << read;
    return texts;
  }

  std::atomic<bool> mended_ = false;
};

TEST_F(BatchRetryTest, RetriesALineByItself) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {7, 30, 61}));
  const std::string receipt = Receipt(batch);
  mended_ = true;
  const uint64_t retry = Complete(RetryOf(batch, 1, {30}));
  EXPECT_EQ(Status(retry).aggregated(), 1);
  EXPECT_EQ(Status(retry).retry_of(), batch);
  EXPECT_EQ(Status(retry).job(), "count");
  EXPECT_THAT(Status(batch).retried_in(), ElementsAre(retry));
  EXPECT_EQ(Status(batch).rejected(), 3) << "what it has counted stays";
  EXPECT_EQ(Receipt(batch), receipt);
  EXPECT_THAT(Sums({batch, retry}), UnorderedElementsAre(Pair("good", "57"), Pair("bad30", "1")));
  EXPECT_THAT(Rejections(batch), ElementsAre("7: no key like bad7",
                                             absl::StrCat("30 in ", retry, ": no key like bad30"),
                                             "61: no key like bad61"));
}

TEST_F(BatchRetryTest, RetriesTheRestAndCountsEachLineOnce) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {7, 30, 61}));
  mended_ = true;
  const uint64_t one = Complete(RetryOf(batch, 1, {30}));
  const uint64_t rest = Complete(RetryOf(batch, 2));
  EXPECT_THAT(Status(batch).retried_in(), ElementsAre(one, rest));
  EXPECT_THAT(Sums({batch, one, rest}),
              UnorderedElementsAre(Pair("good", "57"), Pair("bad7", "1"), Pair("bad30", "1"),
                                   Pair("bad61", "1")));
  const absl::Status nothing = Retry(batch).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(nothing)) << nothing;
  EXPECT_THAT(nothing.message(), HasSubstr("nothing is left to retry"));
}

TEST_F(BatchRetryTest, AnswersASecondRetryOfALineWithTheBatchThatHasIt) {
  const uint64_t batch = SubmitAndWatch("first", Lines(20, {7, 9}));
  const uint64_t first = Complete(RetryOf(batch, 1, {7}));
  const auto both = Retry(batch, {7, 9});
  ASSERT_TRUE(both.ok()) << both.status();
  ASSERT_EQ(both->retries_size(), 2);
  EXPECT_EQ(both->retries(0).batch(), first);
  EXPECT_FALSE(both->retries(0).is_new());
  EXPECT_TRUE(both->retries(1).is_new());
  EXPECT_EQ(both->retries(1).transactions(), 1);
  Complete(both->retries(1).batch());
}

TEST_F(BatchRetryTest, NamesTheLineOfTheBatchThatItRetries) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {7, 30, 61}));
  const uint64_t retry = Complete(RetryOf(batch, 3));
  EXPECT_THAT(Rejections(retry),
              ElementsAre("2 was 7: no key like bad7", "3 was 30: no key like bad30",
                          "4 was 61: no key like bad61"));
  // What is rejected again is retried from there.
  mended_ = true;
  const uint64_t again = Complete(RetryOf(retry, 1, {3}));
  EXPECT_EQ(Status(again).retry_of(), retry);
  EXPECT_THAT(Sums({batch, retry, again}),
              UnorderedElementsAre(Pair("good", "57"), Pair("bad30", "1")));
}

TEST_F(BatchRetryTest, CountsTheLinesOfRecordsThatHaveSeveral) {
  const uint64_t batch =
      SubmitAndWatch("first", "key,\"two\nlines\"\ngood,x\n\nbad4,\"three\nmore\nlines\"\nbad7,y");
  EXPECT_THAT(Rejections(batch), ElementsAre("5: no key like bad4", "8: no key like bad7"));
  const uint64_t retry = Complete(RetryOf(batch, 2));
  EXPECT_THAT(Rejections(retry),
              ElementsAre("3 was 5: no key like bad4", "6 was 8: no key like bad7"));
}

TEST_F(BatchRetryTest, GivesTwoClientsOneBatch) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {7, 30, 61}));
  mended_ = true;
  std::vector<std::future<absl::StatusOr<v1::RetryRejectionsResponse>>> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(std::async(std::launch::async, [&] { return Retry(batch, {7, 30, 61}); }));
  }
  std::vector<uint64_t> batches;
  int new_ones = 0;
  for (auto& call : calls) {
    const auto response = call.get();
    ASSERT_TRUE(response.ok()) << response.status();
    ASSERT_EQ(response->retries_size(), 1);
    batches.push_back(response->retries(0).batch());
    new_ones += response->retries(0).is_new() ? 1 : 0;
  }
  EXPECT_EQ(batches, std::vector<uint64_t>(4, batches[0]));
  EXPECT_EQ(new_ones, 1);
  Complete(batches[0]);
  EXPECT_THAT(Sums({batch, batches[0]}),
              UnorderedElementsAre(Pair("good", "57"), Pair("bad7", "1"), Pair("bad30", "1"),
                                   Pair("bad61", "1")));
}

// Aborted: a channel would repeat a call that is Unavailable by itself.
TEST_F(BatchRetryTest, GoesOnWithAClaimThatWasNotSubmitted) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {7, 30}));
  mended_ = true;
  report_client_->AnswerClaimed(absl::AbortedError("the controller has died"));
  EXPECT_TRUE(absl::IsAborted(Retry(batch, {7}).status()));
  StopInitiator();
  StartInitiator();
  const uint64_t first = Complete(RetryOf(batch, 1, {7}));
  report_client_->AnswerClaimed(absl::AbortedError("the controller has died"));
  EXPECT_TRUE(absl::IsAborted(Retry(batch).status()));
  const uint64_t second = Complete(RetryOf(batch, 1));
  EXPECT_THAT(Sums({batch, first, second}),
              UnorderedElementsAre(Pair("good", "58"), Pair("bad7", "1"), Pair("bad30", "1")));
}

// Also if the job has changed since.
TEST_F(BatchRetryTest, FindsTheBatchThatWasSubmittedAndNotTold) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {7, 30}));
  mended_ = true;
  report_client_->AnswerTold(absl::AbortedError("the controller has died"));
  EXPECT_TRUE(absl::IsAborted(Retry(batch).status()));
  EXPECT_THAT(Status(batch).retried_in(), IsEmpty());
  StopInitiator();
  StartInitiator();
  ASSERT_TRUE(jobs_.Apply(absl::StrCat(kJob, "sla: {max: 1h}\n"), std::nullopt).ok());
  const uint64_t retry = Complete(RetryOf(batch, 2));
  EXPECT_EQ(ledger_->HighestNumber().value(), retry) << "one batch was made";
  EXPECT_EQ(retry, batch + 1);
  EXPECT_THAT(Status(batch).retried_in(), ElementsAre(retry));
  EXPECT_THAT(Sums({batch, retry}),
              UnorderedElementsAre(Pair("good", "58"), Pair("bad7", "1"), Pair("bad30", "1")));
}

TEST_F(BatchRetryTest, FreesTheLinesOfABatchThatIsDeleted) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {7, 30}));
  mended_ = true;
  const uint64_t retry = Complete(RetryOf(batch, 2));
  rpc::CallContext context;
  v1::DeleteBatchRequest request;
  request.set_batch(retry);
  v1::DeleteBatchResponse response;
  ASSERT_TRUE(stub_->DeleteBatch(&context, request, &response).ok());
  EXPECT_THAT(Status(batch).retried_in(), IsEmpty());
  EXPECT_THAT(Rejections(batch), ElementsAre("7: no key like bad7", "30: no key like bad30"));
  const uint64_t again = Complete(RetryOf(batch, 2));
  EXPECT_THAT(Sums({batch, again}),
              UnorderedElementsAre(Pair("good", "58"), Pair("bad7", "1"), Pair("bad30", "1")));
}

TEST_F(BatchRetryTest, LeavesOutWhatIsLongerThanARecordMayBe) {
  const std::string giant(input::kMaxRecordBytes + 1, 'x');
  const uint64_t batch = SubmitAndWatch("first", absl::StrCat("key,other\n", giant, "\nbad3,x\n"));
  const absl::Status too_long = Retry(batch, {2}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(too_long)) << too_long;
  EXPECT_THAT(too_long.message(), HasSubstr("longer than a record may be"));
  mended_ = true;
  const uint64_t retry = Complete(RetryOf(batch, 1));
  EXPECT_THAT(Sums({batch, retry}), UnorderedElementsAre(Pair("bad3", "1")));
  EXPECT_TRUE(absl::IsFailedPrecondition(Retry(batch).status()));
}

TEST_F(BatchRetryTest, SaysWhyNothingIsRetried) {
  const uint64_t batch = SubmitAndWatch("first", Lines(20, {7}));
  EXPECT_TRUE(absl::IsNotFound(Retry(batch + 100).status()));
  const absl::Status counted = Retry(batch, {8}).status();
  EXPECT_TRUE(absl::IsNotFound(counted)) << counted;
  EXPECT_THAT(counted.message(), HasSubstr("has rejected no transaction at line 8"));
  rpc::CallContext context;
  v1::RetryRejectionsRequest neither;
  neither.set_batch(batch);
  v1::RetryRejectionsResponse response;
  EXPECT_EQ(stub_->RetryRejections(&context, neither, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  Upload open(stub_.get());
  open.SendHeader(Header("open"));
  const absl::Status incomplete = Retry(open.Hear().accepted().batch()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(incomplete)) << incomplete;
  EXPECT_THAT(incomplete.message(), HasSubstr("once it is complete"));
  open.context.TryCancel();
}

TEST_F(BatchRetryTest, DoesNotReadTheRecordsOfAJobInAnotherWay) {
  const uint64_t batch = SubmitAndWatch("first", Lines(20, {7}));
  std::string changed = kJob;
  changed.replace(changed.find("format: csv"), 11, "format: jsonl");
  ASSERT_TRUE(jobs_.Apply(changed, std::nullopt).ok());
  const absl::Status refused = Retry(batch).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("reads its input in another way"));
}

TEST_F(BatchRetryTest, SaysThatTheContentIsDeleted) {
  const uint64_t batch = SubmitAndWatch("first", Lines(20, {7}));
  ASSERT_TRUE(ledger_->BeginToDropItems(batch).ok());
  const absl::Status deleted = Retry(batch).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(deleted)) << deleted;
  EXPECT_THAT(deleted.message(), HasSubstr("is deleted, as its retention says"));
}

}  // namespace
}  // namespace muster
