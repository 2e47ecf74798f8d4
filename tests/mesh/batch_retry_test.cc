// SPDX-License-Identifier: Apache-2.0

// What failed of a batch is retried as a new batch, each transaction once.
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
#include "muster/item/queue_names.h"
#include "muster/item/redrive.h"
#include "tests/mesh/batch_service_fixture.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Rejects each line whose key begins with "bad", and gives up each item with a line whose key
// begins with "dead", until it is mended.
class PickyHandler final : public handler::Handler {
 public:
  explicit PickyHandler(const std::atomic<bool>* mended) : mended_(*mended) {}

  handler::Outcome Process(const handler::WorkItem& item, handler::Results& results) override {
    for (const handler::Transaction& line : item.transactions()) {
      const std::string key(line.fields()[0]);
      if (absl::StartsWith(key, "dead") && !mended_) return handler::Outcome::Dead("a bug");
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

  // Lines 2, 3, 4 …, twenty to an item, of which each one in `bad` is rejected, "bad2" at line 2,
  // say, and each item with one in `dead` is given up.
  static std::string Lines(int lines, const std::vector<int>& bad,
                           const std::vector<int>& dead = {}) {
    const auto has = [](const std::vector<int>& some, int line) {
      return std::find(some.begin(), some.end(), line) != some.end();
    };
    std::string text = "key,other\n";
    for (int line = 2; line < lines + 2; ++line) {
      absl::StrAppend(&text,
                      has(bad, line)    ? absl::StrCat("bad", line)
                      : has(dead, line) ? "dead"
                                        : "good",
                      ",x\n");
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
    v1::RetryRejectionsRequest request;
    request.set_batch(batch);
    request.set_all(lines.empty());
    request.mutable_lines()->Add(lines.begin(), lines.end());
    return Ask(request);
  }
  absl::StatusOr<v1::RetryRejectionsResponse> RetryItem(uint64_t batch, uint64_t item) {
    v1::RetryRejectionsRequest request;
    request.set_batch(batch);
    request.add_items(item);
    return Ask(request);
  }
  absl::StatusOr<v1::RetryRejectionsResponse> Ask(const v1::RetryRejectionsRequest& request) {
    rpc::CallContext context;
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

  // Messages of both partitions that were given up.
  int64_t Poison() {
    int64_t poison = 0;
    for (const queue::QueueId& id : item::InputQueues(kAccount, "count", 2)) {
      poison += queues_->Stats(id)->poison;
    }
    return poison;
  }
  // Returns why the poison stays where it does; empty: all is redriven.
  std::string Redrive(uint64_t batch) {
    item::LedgerBatchReopener reopener(ledger_.get(), report_client_.get());
    std::string kept;
    for (const queue::QueueId& id : item::InputQueues(kAccount, "count", 2)) {
      item::RedriveRequest request;
      request.queue = id;
      const auto redriven = item::RedriveItems(request, *queues_, reopener);
      absl::StrAppend(&kept, redriven.status().message());
      if (redriven.ok() && redriven->kept.contains(batch)) kept += redriven->kept.at(batch);
    }
    scheduler_->Advance(batch);
    return kept;
  }
  void Delete(uint64_t batch) {
    rpc::CallContext context;
    v1::DeleteBatchRequest request;
    request.set_batch(batch);
    v1::DeleteBatchResponse response;
    ASSERT_TRUE(stub_->DeleteBatch(&context, request, &response).ok());
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

// The retry took a client's batch of this id for its own, and the records for retried in it.
TEST_F(BatchRetryTest, LeavesNoClientTheRequestIdOfARetry) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {7}));
  const absl::Status refused =
      Submit(absl::StrCat("muster-retry:", batch, ":1"), Lines(1, {})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("header.request_id"));
  mended_ = true;
  const uint64_t retry = Complete(RetryOf(batch, 1));
  EXPECT_THAT(Sums({batch, retry}), UnorderedElementsAre(Pair("good", "59"), Pair("bad7", "1")));
}

TEST_F(BatchRetryTest, FreesTheLinesOfABatchThatIsDeleted) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {7, 30}));
  mended_ = true;
  const uint64_t retry = Complete(RetryOf(batch, 2));
  Delete(retry);
  EXPECT_THAT(Status(batch).retried_in(), IsEmpty());
  EXPECT_THAT(Rejections(batch), ElementsAre("7: no key like bad7", "30: no key like bad30"));
  const uint64_t again = Complete(RetryOf(batch, 2));
  EXPECT_THAT(Sums({batch, again}),
              UnorderedElementsAre(Pair("good", "58"), Pair("bad7", "1"), Pair("bad30", "1")));
}

// In the batch, the quote of line 3 shows that the one of line 2 is not closed. Without line 3 the
// one of line 4 closed it, and two rejected records were retried as one.
TEST_F(BatchRetryTest, LeavesOutAQuoteThatWouldTakeTheNextRecordWithIt) {
  const uint64_t batch =
      SubmitAndWatch("first", "key,other\n\"open,x\nm,\"ok\"\nbad4\",x\ngood,x\n");
  EXPECT_THAT(Rejections(batch), ElementsAre("2: field 1 opens a quote that is never closed",
                                             "4: no key like bad4\""));
  mended_ = true;
  const uint64_t retry = Complete(RetryOf(batch, 1));
  EXPECT_THAT(Sums({batch, retry}),
              UnorderedElementsAre(Pair("m", "1"), Pair("good", "1"), Pair("bad4\"", "1")));
  const absl::Status alone = Retry(batch, {2}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(alone)) << alone;
  EXPECT_THAT(alone.message(), HasSubstr("open a quote that is never closed"));
}

TEST_F(BatchRetryTest, LeavesOutSuchAQuoteOfAnItemThatWasGivenUp) {
  const uint64_t batch =
      SubmitAndWatch("first", "key,other\n\"open,x\nm,\"ok\"\ndead\",x\ngood,x\n");
  mended_ = true;
  const auto response = RetryItem(batch, 0);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->retries_size(), 1);
  EXPECT_EQ(response->retries(0).transactions(), 3);
  const uint64_t retry = Complete(response->retries(0).batch());
  EXPECT_EQ(Status(retry).transactions(), 3);
  EXPECT_THAT(Sums({retry}),
              UnorderedElementsAre(Pair("m", "1"), Pair("good", "1"), Pair("dead\"", "1")));
}

// An LF alone behind it made it a part of the line end: the record of line 3 was none any more, and
// that of line 4 a sound one.
TEST_F(BatchRetryTest, LeavesARecordTheCrAtItsEnd) {
  const uint64_t batch = SubmitAndWatch("first", "key,other\ngood,x\n\r\r\ngood,x\r\r\ngood,x\n");
  const std::string no_end = "a CR that no LF follows: byte ";
  EXPECT_THAT(Rejections(batch), ElementsAre(StartsWith("3: "), StartsWith("4: " + no_end)));
  const uint64_t retry = Complete(RetryOf(batch, 2));
  EXPECT_THAT(Rejections(retry),
              ElementsAre(StartsWith("2 was 3: "), StartsWith("3 was 4: " + no_end)));
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

TEST_F(BatchRetryTest, RetriesAllOfADeadItemAndWhatWasRejected) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {7}, {30, 35}));  // item 1 is dead
  const std::string receipt = Receipt(batch);
  EXPECT_EQ(Status(batch).dead_lettered(), 20);
  mended_ = true;
  const uint64_t retry = Complete(RetryOf(batch, 21));
  EXPECT_EQ(Status(retry).aggregated(), 21);
  EXPECT_EQ(Status(retry).retry_of(), batch);
  EXPECT_THAT(Status(batch).retried_in(), ElementsAre(retry));
  EXPECT_EQ(Status(batch).dead_lettered(), 20) << "what it has counted stays";
  EXPECT_EQ(Receipt(batch), receipt);
  EXPECT_THAT(Sums({batch, retry}),
              UnorderedElementsAre(Pair("good", "57"), Pair("bad7", "1"), Pair("dead", "2")));
  EXPECT_EQ(Poison(), 0) << "nothing is left to do about its message";
  EXPECT_THAT(Retry(batch).status().message(), HasSubstr("nothing is left to retry"));
  const auto again = RetryItem(batch, 1);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->retries(0).batch(), retry);
  EXPECT_FALSE(again->retries(0).is_new());
}

// The new batch is of the job and the handler version of now.
TEST_F(BatchRetryTest, RetriesADeadItemWithTheVersionOfNow) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {}, {30}));
  mended_ = true;
  current_version_ = "2";
  const auto retried = RetryItem(batch, 1);
  ASSERT_TRUE(retried.ok()) << retried.status();
  EXPECT_EQ(Status(batch).handler_version(), "1");
  EXPECT_EQ(Status(retried->retries(0).batch()).handler_version(), "2");
}

TEST_F(BatchRetryTest, LeavesDeadItemsOutWhereRejectionsAloneAreAskedFor) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {7}, {30}));
  v1::RetryRejectionsRequest request;
  request.set_batch(batch);
  request.set_all(true);
  request.set_rejections_only(true);
  const auto retried = Ask(request);
  ASSERT_TRUE(retried.ok()) << retried.status();
  EXPECT_EQ(retried->retries(0).transactions(), 1);
  EXPECT_EQ(Poison(), 1);
}

TEST_F(BatchRetryTest, RetriesADeadItemAgainFromTheBatchThatGaveItUpLast) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {}, {30, 31}));
  const uint64_t retry = Complete(RetryOf(batch, 20));
  EXPECT_EQ(Status(retry).dead_lettered(), 20) << "given up once more";
  const uint64_t again = Complete(RetryOf(retry, 20));
  EXPECT_EQ(Status(again).dead_lettered(), 20);
  mended_ = true;
  const uint64_t last = Complete(RetryOf(again, 20));
  EXPECT_THAT(Sums({batch, retry, again, last}),
              UnorderedElementsAre(Pair("good", "58"), Pair("dead", "2")));
}

TEST_F(BatchRetryTest, SaysWhichDeadItemHasALine) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {7}, {30}));
  const absl::Status refused = Retry(batch, {7, 24}).status();
  EXPECT_TRUE(absl::IsNotFound(refused)) << refused;
  EXPECT_THAT(refused.message(),
              HasSubstr("line 24 of batch 1 is in item 1, which was given up as a whole"));
  const absl::Status counted = RetryItem(batch, 0).status();
  EXPECT_TRUE(absl::IsNotFound(counted)) << counted;
  EXPECT_THAT(counted.message(), HasSubstr("has given up no item 0"));
}

TEST_F(BatchRetryTest, GivesTwoClientsOneBatchOfADeadItem) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {}, {30}));
  mended_ = true;
  std::vector<std::future<absl::StatusOr<v1::RetryRejectionsResponse>>> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(std::async(std::launch::async, [&] { return RetryItem(batch, 1); }));
  }
  std::vector<uint64_t> batches;
  for (auto& call : calls) {
    const auto response = call.get();
    ASSERT_TRUE(response.ok()) << response.status();
    ASSERT_EQ(response->retries_size(), 1);
    batches.push_back(response->retries(0).batch());
  }
  EXPECT_EQ(batches, std::vector<uint64_t>(4, batches[0]));
  Complete(batches[0]);
  EXPECT_THAT(Sums({batch, batches[0]}),
              UnorderedElementsAre(Pair("good", "59"), Pair("dead", "1")));
}

TEST_F(BatchRetryTest, GoesOnWithADeadItemThatWasClaimed) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {}, {30}));
  mended_ = true;
  report_client_->AnswerClaimed(absl::AbortedError("the controller has died"));
  EXPECT_TRUE(absl::IsAborted(RetryItem(batch, 1).status()));
  EXPECT_THAT(Redrive(batch), HasSubstr("about to be retried: `muster batch retry 1 --item 1`"));
  EXPECT_EQ(Poison(), 1);
  StopInitiator();
  StartInitiator();
  report_client_->AnswerTold(absl::AbortedError("the controller has died"));
  EXPECT_TRUE(absl::IsAborted(Retry(batch).status()));
  StopInitiator();
  StartInitiator();
  const uint64_t retry = Complete(RetryOf(batch, 20));
  EXPECT_EQ(ledger_->HighestNumber().value(), retry) << "one batch was made";
  EXPECT_EQ(retry, batch + 1);
  EXPECT_THAT(Sums({batch, retry}), UnorderedElementsAre(Pair("good", "59"), Pair("dead", "1")));
}

// Its message may still be there, as after a death.
TEST_F(BatchRetryTest, RedrivesNoItemThatIsRetried) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {}, {10, 30}));
  mended_ = true;
  const auto claimed = report_client_->ClaimRejections(batch, {.items = {1}}, 1);
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  const int64_t retry = claimed->claims[0].retry;
  ASSERT_TRUE(report_client_->RecordRetry(batch, retry, {}, 9).ok());
  EXPECT_THAT(Redrive(batch), HasSubstr("item 1/1 is retried in batch 9"));
  EXPECT_EQ(Poison(), 1);
  Complete(batch);
  EXPECT_EQ(Status(batch).dead_lettered(), 20) << "the other item counts again";
  EXPECT_THAT(Sums({batch}), UnorderedElementsAre(Pair("good", "39"), Pair("dead", "1")));
}

TEST_F(BatchRetryTest, RetriesNoItemThatARedriveHasOpened) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {}, {30}));
  ASSERT_TRUE(report_->ReopenDeadLettered(batch, {1}).ok());
  const absl::Status open = RetryItem(batch, 1).status();
  EXPECT_TRUE(absl::IsNotFound(open)) << open;
  mended_ = true;
  EXPECT_EQ(Redrive(batch), "");
  Complete(batch);
  EXPECT_TRUE(absl::IsFailedPrecondition(Retry(batch).status()));
  EXPECT_THAT(Sums({batch}), UnorderedElementsAre(Pair("good", "59"), Pair("dead", "1")));
}

TEST_F(BatchRetryTest, FreesTheItemsOfABatchThatIsDeleted) {
  const uint64_t batch = SubmitAndWatch("first", Lines(60, {}, {30}));
  mended_ = true;
  Delete(Complete(RetryOf(batch, 20)));
  EXPECT_THAT(Status(batch).retried_in(), IsEmpty());
  const uint64_t again = Complete(RetryOf(batch, 20));
  EXPECT_THAT(Sums({batch, again}), UnorderedElementsAre(Pair("good", "59"), Pair("dead", "1")));
}

}  // namespace
}  // namespace muster
