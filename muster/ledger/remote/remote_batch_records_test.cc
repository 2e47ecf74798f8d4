// SPDX-License-Identifier: Apache-2.0

// On real servers on loopback.
#include "muster/ledger/remote/remote_batch_records.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/ledger/batch_proto.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/server.h"
#include "muster/v1/ledger_service.grpc.pb.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::ledger::remote {
namespace {

// Long enough to reach a server on a busy machine.
constexpr absl::Duration kTimeout = absl::Seconds(2);

// An initiator that has every batch, and that hangs while it is told to.
class Initiator : public v1::LedgerService::Service {
 public:
  Initiator() {
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    server_ = rpc::Server::Start(options, {{v1::LedgerService::service_full_name(), this}}).value();
  }
  ~Initiator() override { Hang(false); }

  const std::string& address() const { return server_->addresses().front(); }
  int calls() const { return calls_; }

  void Hang(bool hangs) {
    base::MutexLock lock(&mu_);
    hangs_ = hangs;
    changed_.NotifyAll();
  }

  v1::MarkCompleteRequest marked() const {
    base::MutexLock lock(&mu_);
    return marked_;
  }

  grpc::Status GetLedgerBatch(grpc::ServerContext*, const v1::GetLedgerBatchRequest* request,
                              v1::GetLedgerBatchResponse* response) override {
    ++calls_;
    Batch batch;
    batch.number = request->batch();
    batch.state = BatchState::kSealed;
    *response->mutable_record() = RecordOf(batch);
    *response->mutable_progress() = ProgressOf(batch);
    std::vector<ItemBoundary> items(static_cast<size_t>(request->max_items()));
    AddTo(items, response->mutable_items());
    response->set_wants_outcome(true);
    return grpc::Status::OK;
  }
  grpc::Status MarkComplete(grpc::ServerContext*, const v1::MarkCompleteRequest* request,
                            v1::MarkCompleteResponse*) override {
    ++calls_;
    base::MutexLock lock(&mu_);
    marked_ = *request;
    while (hangs_) changed_.Wait(&mu_);
    return grpc::Status::OK;
  }

 private:
  std::atomic<int> calls_ = 0;
  mutable base::Mutex mu_;
  base::CondVar changed_;
  bool hangs_ ABSL_GUARDED_BY(mu_) = false;
  v1::MarkCompleteRequest marked_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<rpc::Server> server_;
};

class NewerInitiator final : public Initiator {
 public:
  // Has an open batch of the job "shop", and of no other; 0: of none.
  explicit NewerInitiator(uint64_t open = 0) : open_(open) {}

  grpc::Status FindOpenBatch(grpc::ServerContext*, const v1::FindOpenBatchRequest* request,
                             v1::FindOpenBatchResponse* response) override {
    response->set_batch(open_);
    const bool counts = open_ != 0 && request->but_of_revision() != "its own";
    if (counts && request->job() == "shop") return grpc::Status::OK;
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "none");
  }
  grpc::Status ReopenItems(grpc::ServerContext*, const v1::ReopenItemsRequest*,
                           v1::ReopenItemsResponse*) override {
    return grpc::Status::OK;
  }

 private:
  const uint64_t open_;
};

class RemoteBatchRecordsTest : public ::testing::Test {
 protected:
  absl::Status MarkComplete(uint64_t batch) { return records_.MarkComplete(batch, clock_.Now()); }

  base::FakeClock clock_;
  Initiator initiator_;
  std::vector<std::string> known_ = {initiator_.address()};
  RemoteBatchRecords records_{[this] { return known_; }, {}, kTimeout, &clock_};
};

TEST_F(RemoteBatchRecordsTest, WaitsOnceForAnInitiatorThatHangsHoweverManyBatchesItHas) {
  initiator_.Hang(true);
  for (uint64_t batch = 1; batch <= 100; ++batch) {
    const absl::Status away = MarkComplete(batch);
    EXPECT_TRUE(absl::IsUnavailable(away)) << away;
  }
  EXPECT_EQ(initiator_.calls(), 1);
}

TEST_F(RemoteBatchRecordsTest, AsksAnInitiatorThatHungAgainAfterAWhile) {
  initiator_.Hang(true);
  EXPECT_TRUE(absl::IsUnavailable(MarkComplete(1)));
  initiator_.Hang(false);
  EXPECT_TRUE(absl::IsUnavailable(MarkComplete(1)));
  clock_.Advance(rpc::kBreakerPause);
  EXPECT_EQ(MarkComplete(1), absl::OkStatus());
  EXPECT_EQ(MarkComplete(2), absl::OkStatus());
}

TEST_F(RemoteBatchRecordsTest, AsksOthersWhileOneHangs) {
  Initiator other;
  known_.push_back(other.address());
  initiator_.Hang(true);
  EXPECT_EQ(MarkComplete(1), absl::OkStatus()) << "the time of a call stands still on this clock";
  for (uint64_t batch = 2; batch <= 100; ++batch) EXPECT_EQ(MarkComplete(batch), absl::OkStatus());
  EXPECT_EQ(initiator_.calls(), 1);
}

TEST_F(RemoteBatchRecordsTest, ReadsABatchWithItsItemsByOneCall) {
  const absl::StatusOr<BatchView> view = records_.View(7, 3);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->batch.number, 7u);
  EXPECT_EQ(view->batch.state, BatchState::kSealed);
  EXPECT_EQ(view->items.size(), 3u);
  EXPECT_TRUE(view->wants_outcome);
  EXPECT_EQ(initiator_.calls(), 1);
}

TEST_F(RemoteBatchRecordsTest, TellsTheOutcomeWithTheCompletion) {
  ASSERT_EQ(MarkComplete(7), absl::OkStatus());
  EXPECT_FALSE(initiator_.marked().has_outcome());
  ASSERT_EQ(records_.MarkCompleteAndTell(7, clock_.Now(), {}), absl::OkStatus());
  EXPECT_TRUE(initiator_.marked().has_outcome());
  const BatchOutcome outcome{{{3, {"a", "b"}}}, {{2, "no price"}}};
  ASSERT_EQ(records_.MarkCompleteAndTell(7, clock_.Now(), outcome), absl::OkStatus());
  const v1::BatchOutcome told = initiator_.marked().outcome();
  EXPECT_EQ(told.records(0).line(), 3);
  EXPECT_EQ(told.records(0).fields(1), "b");
  EXPECT_EQ(told.rejections(0).line(), 2);
  EXPECT_EQ(told.rejections(0).reason(), "no price");
}

// The fake has no ReopenItems, as an initiator that is older.
TEST_F(RemoteBatchRecordsTest, AsksOnBeyondAnInitiatorThatIsOlderThanTheCall) {
  const absl::Status alone = records_.ReopenItems(1, {7}).status();
  EXPECT_TRUE(absl::IsUnimplemented(alone)) << alone;
  EXPECT_THAT(std::string(alone.message()), ::testing::HasSubstr("an older muster"));
  NewerInitiator newer;
  known_.push_back(newer.address());
  EXPECT_EQ(records_.ReopenItems(1, {7}).status(), absl::OkStatus());
}

TEST_F(RemoteBatchRecordsTest, FindsAnOpenBatchOfAJobAtAnyInitiatorAndKnowsWhenItCannotTell) {
  NewerInitiator idle, busy(7);
  known_ = {idle.address(), busy.address()};
  EXPECT_EQ(*records_.FindOpenBatch("shop"), 7u);
  EXPECT_EQ(*records_.FindOpenBatch("other"), std::nullopt);
  EXPECT_EQ(*records_.FindOpenBatch("shop", "its own"), std::nullopt);
  known_ = {idle.address(), initiator_.address()};
  EXPECT_TRUE(absl::IsUnimplemented(records_.FindOpenBatch("shop").status())) << "one is older";
  known_ = {"localhost:1", idle.address()};
  EXPECT_TRUE(absl::IsUnavailable(records_.FindOpenBatch("shop").status())) << "one is away";
  known_ = {"localhost:1", busy.address()};
  EXPECT_EQ(*records_.FindOpenBatch("shop"), 7u);
  known_ = {};
  EXPECT_TRUE(absl::IsUnavailable(records_.FindOpenBatch("shop").status())) << "none is known yet";
}

}  // namespace
}  // namespace muster::ledger::remote
