// SPDX-License-Identifier: Apache-2.0

// Batches of calls over a job that another initiator of the mesh changes.
#include "services/initiator/call/call_batches.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/status.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/job/job_text.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::call {
namespace {

std::string WithAnotherColumnFirst() {
  return "name: shop\ninput:\n  format: csv\n  columns: {id: id, amount: amount}\n"
         "handler: {linked: sums}\ngroups:\n  - name: totals\n    keys: [amount]\n"
         "    measures: {count: int}\n";
}

class CallBatchesTest : public ::testing::Test {
 protected:
  CallBatchesTest() {
    Apply(job::JobText("shop"));
    EXPECT_TRUE(jobs_.GetDefinition("shop").ok());  // this initiator knows it by now
    Start(&claims_);
  }

  // Null: the initiator is alone in its mesh.
  void Start(submit::RequestClaims* claims) {
    submissions_ = std::make_unique<submit::Submissions>(submit::Submissions::Dependencies{
        &jobs_, ledger_.get(), &numbers_, uploads_.get(),
        [this](const job::JobDefinition&) -> absl::StatusOr<std::string> {
          if (before_draft_) std::exchange(before_draft_, nullptr)();
          return "1";
        },
        [](const job::JobDefinition&) { return absl::OkStatus(); }, &clock_, 0, claims, "here"});
    batches_ = std::make_unique<CallBatches>(submissions_.get(), &jobs_);
  }

  // As another initiator does it, of which this one does not hear.
  void Apply(const std::string& text) {
    job::JobRegistry others(&store_, &clock_);
    const auto applied = others.Apply(text, std::nullopt);
    ASSERT_TRUE(applied.ok()) << applied.status();
  }

  absl::StatusOr<CallPlace> Call(const std::string& column, const std::string& text,
                                 const std::string& id = "") {
    v1::CallRequest request;
    request.set_job("shop");
    request.set_request_id(id);
    (*request.mutable_fields())[column] = text;
    const v1::CallRequest* const calls[] = {&request};
    return batches_->Make(calls).front();
  }

  ledger::Batch BatchAt(const absl::StatusOr<CallPlace>& place) {
    EXPECT_TRUE(place.ok()) << place.status();
    return ledger_->Get(place->batch).value();
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  sync::testing::MemorySyncStore store_;
  job::JobRegistry jobs_{&store_, &clock_};
  sync::UniqueIdGenerator numbers_{&store_, "numbers"};
  std::unique_ptr<submit::Uploads> uploads_ = submit::Uploads::Open(dir_ / "uploads").value();
  std::unique_ptr<ledger::BatchLedger> ledger_ =
      backend::OpenBatchLedger(backend::DataDirUrls(dir_.path()).ledger, backend::Mode::kReadWrite)
          .value();
  submit::RequestClaims claims_{&store_,
                                {"here", "initiator", "here:7700"},
                                [](const v1::RequestClaim&, const submit::RequestName&) {
                                  return absl::NotFoundError("it has none");
                                }};
  std::function<void()> before_draft_;
  std::unique_ptr<submit::Submissions> submissions_;
  std::unique_ptr<CallBatches> batches_;
};

TEST_F(CallBatchesTest, WritesARecordByTheRevisionThatItsBatchIsOf) {
  Apply(WithAnotherColumnFirst());
  const ledger::Batch batch = BatchAt(Call("amount", "7"));
  EXPECT_EQ(batch.job_revision, jobs_.GetDefinition("shop")->revision);
  EXPECT_EQ(batch.content, "id,amount\n,7\n");
}

TEST_F(CallBatchesTest, WritesARecordAnewWhoseJobChangesBeforeItsBatchIsRecorded) {
  before_draft_ = [this] { Apply(WithAnotherColumnFirst()); };
  const ledger::Batch batch = BatchAt(Call("amount", "7"));
  EXPECT_EQ(batch.job_revision, jobs_.GetDefinition("shop")->revision);
  EXPECT_EQ(batch.content, "id,amount\n,7\n");
  EXPECT_EQ(ledger_->ListOpen().value().size(), 1u);  // nothing stays of the first try
}

TEST_F(CallBatchesTest, OfAnInitiatorThatIsAloneFollowTheJobToo) {
  Start(nullptr);
  Apply(WithAnotherColumnFirst());
  const ledger::Batch batch = BatchAt(Call("amount", "7"));
  EXPECT_EQ(batch.job_revision, jobs_.GetDefinition("shop")->revision);
  EXPECT_EQ(batch.content, "id,amount\n,7\n");
}

TEST_F(CallBatchesTest, RefusesARecordOnlyByTheJobAsItIs) {
  Apply(job::JobText("shop", "price"));
  EXPECT_EQ(BatchAt(Call("price", "7")).content, "price\n7\n");
  Apply(job::JobText("shop", "amount"));
  const absl::Status refused = Call("price", "7").status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
}

TEST_F(CallBatchesTest, SealsABatchAsItBeginsIt) {
  const ledger::Batch shared = BatchAt(Call("amount", "7"));
  EXPECT_EQ(shared.state, ledger::BatchState::kSealed);
  EXPECT_FALSE(shared.undecided);
  EXPECT_EQ(shared.items, 1u);
  EXPECT_EQ(shared.source_bytes, shared.content.size());
  Start(nullptr);
  EXPECT_EQ(BatchAt(Call("amount", "8", "id")).state, ledger::BatchState::kSealed);
}

TEST_F(CallBatchesTest, FindsTheBatchOfARequestIdAgain) {
  const absl::StatusOr<CallPlace> first = Call("amount", "7", "id");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Call("amount", "7", "id")->batch, first->batch);
  EXPECT_EQ(rpc::Reason(Call("amount", "8", "id").status())->reason, "REQUEST_ID_REUSED");
}

TEST_F(CallBatchesTest, RefusesARequestIdThatMusterGives) {
  for (const char* id : {"muster-retry:1:1", "schedule:0123456789abcdef:run:one"}) {
    const absl::Status refused = Call("amount", "7", id).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  }
  EXPECT_TRUE(ledger_->ListOpen().value().empty());
}

}  // namespace
}  // namespace muster::initiator::call
