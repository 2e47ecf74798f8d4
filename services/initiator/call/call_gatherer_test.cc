// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/call/call_gatherer.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/rpc/status.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::initiator::call {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Records = std::vector<std::string>;

// Makes batches of what it is given, and ends them when it is told to.
class CallGathererTest : public ::testing::Test {
 protected:
  CallGathererTest() {
    options_.making_threads = 1;  // so that groups are made in the order in which they left
  }

  void Start() {
    gatherer_ = std::make_unique<CallGatherer>(
        CallGatherer::Steps{
            .make = [this](absl::Span<const v1::CallRequest* const> calls) { return Make(calls); },
            .advance = [this](uint64_t batch) { NoteAdvanced(batch); },
            .get = [this](uint64_t batch) { return Get(batch); },
            .read = [this](uint64_t batch,
                           const VisitOutcome& visit) { return Read(batch, visit); },
            .why =
                [](uint64_t batch) { return absl::StrCat("no processor has job ", batch, "."); }},
        &clock_, options_);
  }

  uint64_t Call(const std::string& record, const std::string& request_id = "",
                absl::Duration patience = absl::Minutes(1)) {
    v1::CallRequest request;
    request.set_job("job");
    request.set_record(record);
    request.set_request_id(request_id);
    return gatherer_->Add(std::move(request), clock_.Monotonic() + patience,
                          [this, record](absl::StatusOr<v1::CallResponse> answer) {
                            base::MutexLock lock(&mu_);
                            answers_.emplace(record, std::move(answer));
                            changed_.NotifyAll();
                          });
  }

  // The answer to the only call of the record.
  absl::StatusOr<v1::CallResponse> AwaitAnswer(const std::string& record) {
    base::MutexLock lock(&mu_);
    while (!answers_.contains(record)) changed_.Wait(&mu_);
    EXPECT_EQ(answers_.count(record), 1) << record;
    return answers_.find(record)->second;
  }

  // The groups that were begun to be made, once there are so many.
  std::vector<Records> AwaitMade(size_t groups) {
    base::MutexLock lock(&mu_);
    while (made_.size() < groups) changed_.Wait(&mu_);
    return made_;
  }

  // The gatherer has noted so many batches as made.
  void AwaitNoted(size_t batches) {
    base::MutexLock lock(&mu_);
    while (advanced_ < batches) changed_.Wait(&mu_);
  }

  void HoldMaking(bool hold) {
    base::MutexLock lock(&mu_);
    hold_ = hold;
    changed_.NotifyAll();
  }

  void End(uint64_t batch, ledger::BatchState state = ledger::BatchState::kComplete) {
    {
      base::MutexLock lock(&mu_);
      states_[batch] = state;
    }
    gatherer_->NoteOver(batch);
  }

  std::vector<absl::StatusOr<CallPlace>> Make(absl::Span<const v1::CallRequest* const> calls) {
    base::MutexLock lock(&mu_);
    Records& group = made_.emplace_back();
    for (const v1::CallRequest* call : calls) group.push_back(call->record());
    changed_.NotifyAll();
    while (hold_) changed_.Wait(&mu_);
    const std::string& request_id = calls.front()->request_id();
    uint64_t batch = 0;
    if (!request_id.empty()) batch = owned_[request_id];
    if (batch == 0) batch = ++last_batch_;
    if (!request_id.empty()) owned_[request_id] = batch;
    states_.try_emplace(batch, ledger::BatchState::kSealed);
    std::vector<absl::StatusOr<CallPlace>> places;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i]->record() == "unfit") {
        places.emplace_back(absl::InvalidArgumentError("unfit"));
      } else {
        places.emplace_back(CallPlace{batch, static_cast<int64_t>(i + 2),
                                      std::make_shared<const v1::CallAccepted>(columns_)});
      }
    }
    return places;
  }

  void NoteAdvanced(uint64_t) {
    base::MutexLock lock(&mu_);
    ++advanced_;
    changed_.NotifyAll();
  }

  absl::StatusOr<ledger::Batch> Get(uint64_t number) {
    base::MutexLock lock(&mu_);
    ++looks_;
    changed_.NotifyAll();
    while (hold_looks_) changed_.Wait(&mu_);
    const auto state = states_.find(number);
    if (state == states_.end()) return absl::NotFoundError("no such batch");
    ledger::Batch batch;
    batch.number = number;
    batch.state = state->second;
    batch.cancel_reason = "by mistake";
    return batch;
  }

  // The record at line 2 is rejected, that at line 3 gives its line; others give nothing.
  absl::StatusOr<v1::CallAccepted> Read(uint64_t, const VisitOutcome& visit) {
    {
      base::MutexLock lock(&mu_);
      if (read_failures_ > 0) {
        --read_failures_;
        changed_.NotifyAll();
        return absl::UnavailableError("no controller");
      }
    }
    v1::CallResponse rejected, given;
    rejected.mutable_rejected()->set_reason("line 2");
    visit(2, rejected);
    given.mutable_accepted()->add_records()->add_fields("line 3");
    visit(3, given);
    base::MutexLock lock(&mu_);
    while (hold_reads_) changed_.Wait(&mu_);
    return v1::CallAccepted();
  }

  base::FakeClock clock_;
  GatherOptions options_;
  v1::CallAccepted columns_;  // of the job; before Start
  base::Mutex mu_;
  base::CondVar changed_;
  bool hold_ ABSL_GUARDED_BY(mu_) = false;
  bool hold_reads_ ABSL_GUARDED_BY(mu_) = false;
  bool hold_looks_ ABSL_GUARDED_BY(mu_) = false;
  int looks_ ABSL_GUARDED_BY(mu_) = 0;
  int read_failures_ ABSL_GUARDED_BY(mu_) = 0;
  size_t advanced_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t last_batch_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Records> made_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, uint64_t> owned_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, ledger::BatchState> states_ ABSL_GUARDED_BY(mu_);
  std::multimap<std::string, absl::StatusOr<v1::CallResponse>> answers_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<CallGatherer> gatherer_;  // last: its threads use the others
};

TEST_F(CallGathererTest, MakesASingleCallDurableAtOnce) {
  Start();
  Call("a");
  EXPECT_THAT(AwaitMade(1), ElementsAre(Records{"a"}));
}

TEST_F(CallGathererTest, GathersTheCallsThatArriveWhileOthersAreMadeDurable) {
  Start();
  HoldMaking(true);
  Call("a");
  AwaitMade(1);
  for (const char* record : {"b", "c", "d"}) Call(record);
  HoldMaking(false);
  EXPECT_THAT(AwaitMade(2), ElementsAre(Records{"a"}, Records{"b", "c", "d"}));
}

TEST_F(CallGathererTest, GivesEachCallItsOwnOutcome) {
  Start();
  HoldMaking(true);
  Call("first");
  AwaitMade(1);
  for (const char* record : {"b", "c", "d"}) Call(record);
  HoldMaking(false);
  AwaitNoted(2);
  End(2);
  const auto rejected = AwaitAnswer("b"), given = AwaitAnswer("c"), taken = AwaitAnswer("d");
  ASSERT_TRUE(rejected.ok() && given.ok() && taken.ok());
  EXPECT_EQ(rejected->rejected().reason(), "line 2");
  EXPECT_EQ(given->accepted().records(0).fields(0), "line 3");
  EXPECT_TRUE(taken->has_accepted());
  EXPECT_EQ(taken->accepted().records_size(), 0);
  EXPECT_EQ(taken->batch(), 2);
  EXPECT_EQ(taken->line(), 4);
  End(1);
  EXPECT_EQ(AwaitAnswer("first")->batch(), 1);
}

TEST_F(CallGathererTest, AnswersByTheOutcomeThatItIsToldAndReadsNothing) {
  columns_.add_columns()->set_name("double");
  Start();
  HoldMaking(true);
  Call("first");
  AwaitMade(1);
  for (const char* record : {"b", "c", "d"}) Call(record);
  HoldMaking(false);
  AwaitNoted(2);
  EXPECT_TRUE(gatherer_->WaitFor(2));
  {
    base::MutexLock lock(&mu_);
    states_[2] = ledger::BatchState::kComplete;
    read_failures_ = 1000;  // no read has an answer
  }
  v1::BatchOutcome outcome;
  v1::Rejection* const rejection = outcome.add_rejections();
  rejection->set_line(2);
  rejection->set_reason("too late");
  for (const char* text : {"one", "two"}) {
    v1::OutputRecord* const record = outcome.add_records();
    record->set_line(3);
    record->add_fields(text);
  }
  gatherer_->NoteOutcome(2, outcome);
  const auto rejected = AwaitAnswer("b"), given = AwaitAnswer("c"), taken = AwaitAnswer("d");
  ASSERT_TRUE(rejected.ok() && given.ok() && taken.ok());
  EXPECT_EQ(rejected->rejected().reason(), "too late");
  ASSERT_EQ(given->accepted().records_size(), 2);
  EXPECT_EQ(given->accepted().records(1).fields(0), "two");
  EXPECT_EQ(given->accepted().columns(0).name(), "double");
  EXPECT_EQ(given->line(), 3);
  EXPECT_EQ(taken->accepted().records_size(), 0);
  EXPECT_EQ(taken->accepted().columns(0).name(), "double");
  EXPECT_EQ(taken->batch(), 2);
  EXPECT_FALSE(gatherer_->WaitFor(2));
  gatherer_->NoteOutcome(2, outcome);  // again, as by a controller whose word was lost
}

TEST_F(CallGathererTest, ReadsTheOutcomeForACallThatComesAfterItWasTold) {
  Start();
  Call("own", "id");
  AwaitNoted(1);
  {
    base::MutexLock lock(&mu_);
    states_[1] = ledger::BatchState::kComplete;
  }
  gatherer_->NoteOutcome(1, v1::BatchOutcome());
  EXPECT_TRUE(AwaitAnswer("own").ok());
  Call("again", "id");
  EXPECT_EQ(AwaitAnswer("again")->rejected().reason(), "line 2");  // as the report says
}

TEST_F(CallGathererTest, WaitsForTheWindowWhileSeveralBatchesAreOnTheirWay) {
  options_.at_once = 2;
  Start();
  Call("a");
  AwaitNoted(1);
  Call("b");
  AwaitNoted(2);
  Call("c");
  Call("d");
  Call("own", "id");  // of one thread: it would come behind what had left before
  EXPECT_THAT(AwaitMade(3), ElementsAre(Records{"a"}, Records{"b"}, Records{"own"}));
  clock_.Advance(options_.window);
  EXPECT_EQ(AwaitMade(4).back(), (Records{"c", "d"}));
}

TEST_F(CallGathererTest, GoesOnWithoutTheWindowWhenABatchIsOver) {
  options_.at_once = 1;
  Start();
  Call("a");
  AwaitNoted(1);
  Call("b");
  End(1);
  EXPECT_THAT(AwaitMade(2), ElementsAre(Records{"a"}, Records{"b"}));
}

TEST_F(CallGathererTest, DoesNotWaitWithAGroupThatFillsABatch) {
  options_.at_once = 1;
  options_.group_bytes = 2000;
  Start();
  Call("a");
  AwaitNoted(1);
  const std::string half(1000, 'x');
  Call(half);
  Call(half + "y");
  EXPECT_EQ(AwaitMade(2).back(), (Records{half, half + "y"}));
}

TEST_F(CallGathererTest, AnswersAnUnfitRecordAndMakesTheOthers) {
  Start();
  HoldMaking(true);
  Call("a");
  AwaitMade(1);
  Call("unfit");
  Call("b");
  HoldMaking(false);
  EXPECT_TRUE(absl::IsInvalidArgument(AwaitAnswer("unfit").status()));
  AwaitNoted(2);
  End(2);
  EXPECT_TRUE(AwaitAnswer("b").ok());
}

TEST_F(CallGathererTest, GivesCallsWithARequestIdTheirOwnBatchWhichTheyShare) {
  Start();
  Call("own", "id");
  AwaitNoted(1);
  Call("again", "id");
  AwaitNoted(2);
  EXPECT_THAT(AwaitMade(2), ElementsAre(Records{"own"}, Records{"again"}));
  End(1);
  EXPECT_EQ(AwaitAnswer("own")->batch(), 1);
  EXPECT_EQ(AwaitAnswer("again")->batch(), 1);
  Call("late", "id");  // it is over by now, and nothing will be heard of it
  EXPECT_EQ(AwaitAnswer("late")->batch(), 1);
}

TEST_F(CallGathererTest, SaysAtTheDeadlineWhatTheRecordWaitsFor) {
  Start();
  Call("a", "", absl::Seconds(5));
  AwaitNoted(1);
  clock_.Advance(absl::Seconds(5));
  const absl::Status late = AwaitAnswer("a").status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("it is in batch 1. no processor has job 1."));
}

TEST_F(CallGathererTest, DropsTheRecordOfACallerThatLeavesBeforeItIsMadeDurable) {
  Start();
  HoldMaking(true);
  Call("a");
  AwaitMade(1);
  const uint64_t leaver = Call("leaver");
  Call("b");
  EXPECT_TRUE(gatherer_->Leave(leaver));
  EXPECT_FALSE(gatherer_->Leave(leaver));
  HoldMaking(false);
  EXPECT_EQ(AwaitMade(2).back(), Records{"b"});
  base::MutexLock lock(&mu_);
  EXPECT_FALSE(answers_.contains("leaver"));
}

TEST_F(CallGathererTest, CountsCallsThatHaveLeftUntilAThreadHasComeToThem) {
  options_.max_calls = 20;
  Start();
  HoldMaking(true);
  Call("held");  // has the only thread
  AwaitMade(1);
  for (int i = 0; i < 40; ++i) {
    const uint64_t call = Call(absl::StrCat("leaver ", i), absl::StrCat("id ", i));
    gatherer_->Leave(call);
  }
  Call("too many");
  EXPECT_TRUE(absl::IsResourceExhausted(AwaitAnswer("too many").status()));
  HoldMaking(false);
}

TEST_F(CallGathererTest, RefusesCallsBeyondItsBounds) {
  options_.max_calls = 2;
  options_.max_bytes = 2000;
  Start();
  Call("a");
  AwaitNoted(1);
  HoldMaking(true);
  Call(std::string(1500, 'x'));
  Call("too many");
  EXPECT_TRUE(absl::IsResourceExhausted(AwaitAnswer("too many").status()));
  End(1);
  AwaitAnswer("a").IgnoreError();
  const std::string large(600, 'y');
  Call(large);
  EXPECT_THAT(std::string(AwaitAnswer(large).status().message()), HasSubstr("not durable yet"));
  HoldMaking(false);
  AwaitNoted(2);
  Call("there is room again");
  AwaitMade(3);
}

TEST_F(CallGathererTest, TellsThatTheBatchWasCancelledOrDeleted) {
  Start();
  Call("cancelled");
  AwaitNoted(1);
  End(1, ledger::BatchState::kCancelled);
  const absl::Status cancelled = AwaitAnswer("cancelled").status();
  EXPECT_TRUE(absl::IsCancelled(cancelled));
  EXPECT_EQ(rpc::Reason(cancelled)->reason, "BATCH_CANCELLED");
  EXPECT_THAT(std::string(cancelled.message()), HasSubstr("by mistake"));
  Call("deleted");
  AwaitNoted(2);
  {
    base::MutexLock lock(&mu_);
    states_.erase(2);
  }
  gatherer_->NoteOver(2);
  EXPECT_TRUE(absl::IsAborted(AwaitAnswer("deleted").status()));
}

TEST_F(CallGathererTest, FindsTheEndOfABatchThatWasNotHeardOf) {
  Start();
  Call("a");
  AwaitNoted(1);
  {
    base::MutexLock lock(&mu_);
    states_[1] = ledger::BatchState::kComplete;
  }
  clock_.Advance(options_.look_interval);
  EXPECT_TRUE(AwaitAnswer("a").ok());
}

TEST_F(CallGathererTest, LooksAgainAtABatchThatEndsWhileItIsLookedAt) {
  Start();
  Call("a");
  AwaitNoted(1);
  {
    base::MutexLock lock(&mu_);
    hold_looks_ = true;
  }
  gatherer_->NoteOver(1);  // not yet
  {
    base::MutexLock lock(&mu_);
    while (looks_ == 0) changed_.Wait(&mu_);
  }
  gatherer_->NoteOver(1);  // heard during the look
  {
    base::MutexLock lock(&mu_);
    hold_looks_ = false;
    changed_.NotifyAll();
    while (looks_ < 2) changed_.Wait(&mu_);  // without any time
  }
}

// Its line was visited before it came; it was taken for one of which there is nothing to say.
TEST_F(CallGathererTest, ReadsAgainForACallThatComesWhileOutcomesAreRead) {
  Start();
  {
    base::MutexLock lock(&mu_);
    hold_reads_ = true;
  }
  Call("own", "id");
  AwaitNoted(1);
  End(1);
  EXPECT_EQ(AwaitAnswer("own")->rejected().reason(), "line 2");
  Call("again", "id");
  AwaitNoted(2);
  {
    base::MutexLock lock(&mu_);
    hold_reads_ = false;
    changed_.NotifyAll();
  }
  EXPECT_EQ(AwaitAnswer("again")->rejected().reason(), "line 2");
}

TEST_F(CallGathererTest, ReadsOutcomesAgainWhenNoControllerAnswered) {
  Start();
  {
    base::MutexLock lock(&mu_);
    read_failures_ = 1;
  }
  Call("a", "", absl::InfiniteDuration());
  AwaitNoted(1);
  End(1);
  {
    base::MutexLock lock(&mu_);
    while (read_failures_ > 0) changed_.Wait(&mu_);
  }
  for (;;) {  // until the failure is noted: then it looks again within a moment
    clock_.Advance(absl::Seconds(1));
    base::MutexLock lock(&mu_);
    if (answers_.contains("a")) break;
  }
  EXPECT_TRUE(AwaitAnswer("a").ok());
}

TEST_F(CallGathererTest, AnswersAllCallsWhenItDrains) {
  Start();
  Call("durable");
  AwaitNoted(1);
  HoldMaking(true);
  Call("gathered");
  gatherer_->Drain();
  EXPECT_TRUE(absl::IsUnavailable(AwaitAnswer("durable").status()));
  EXPECT_TRUE(absl::IsUnavailable(AwaitAnswer("gathered").status()));
  Call("late");
  EXPECT_THAT(std::string(AwaitAnswer("late").status().message()), HasSubstr("no batch was made"));
  HoldMaking(false);
}

}  // namespace
}  // namespace muster::initiator::call
