// SPDX-License-Identifier: Apache-2.0

// A submit beside what it waits for: two initiators with a ledger and a registry each, and one sync
// store between them.
#include "services/initiator/submit/submissions.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/mutex.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/status.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/job/job_text.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::submit {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Calls a hook before each call of the store, on the thread of the call.
class HookedStore final : public sync::OptimisticSyncStore {
 public:
  explicit HookedStore(sync::OptimisticSyncStore* behind) : behind_(behind) {}

  absl::StatusOr<sync::VersionedData> Get(absl::string_view key) override {
    if (before_get) before_get(key);
    return behind_->Get(key);
  }
  absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                uint64_t version) override {
    if (before_write) before_write(key);
    return behind_->TryWrite(key, data, version);
  }
  absl::StatusOr<bool> TryDelete(absl::string_view key, uint64_t version) override {
    return behind_->TryDelete(key, version);
  }

  // Set them while no call is under way.
  std::function<void(absl::string_view key)> before_get;
  std::function<void(absl::string_view key)> before_write;

 private:
  sync::OptimisticSyncStore* const behind_;  // not owned
};

class SubmissionsTest : public ::testing::Test {
 protected:
  struct Initiator {
    std::string data_dir;
    std::unique_ptr<HookedStore> store;
    std::unique_ptr<job::JobRegistry> jobs;
    std::unique_ptr<ledger::BatchLedger> ledger;
    std::unique_ptr<Uploads> uploads;
    std::unique_ptr<RequestClaims> claims;
    std::unique_ptr<Submissions> submissions;
  };

  SubmissionsTest() {
    for (const std::string name : {"a", "b"}) Start(name);
    EXPECT_TRUE(of("a").jobs->Apply(job::JobText("shop"), std::nullopt).ok());
    // Both know the job.
    for (const std::string name : {"a", "b"}) {
      EXPECT_TRUE(of(name).jobs->GetDefinition("shop").ok());
    }
  }

  // Starts the initiator, again if it ran before, on its data directory.
  void Start(const std::string& name) {
    Initiator& it = initiators_[name];
    it = Initiator();
    it.data_dir = dir_ / name;
    it.store = std::make_unique<HookedStore>(&shared_);
    it.jobs = std::make_unique<job::JobRegistry>(it.store.get(), &clock_);
    it.uploads = Uploads::Open(it.data_dir + "/uploads").value();
    it.ledger = backend::OpenBatchLedger(backend::DataDirUrls(it.data_dir).ledger,
                                         backend::Mode::kReadWrite)
                    .value();
    it.claims = std::make_unique<RequestClaims>(
        it.store.get(), RequestClaims::Owner{name, "initiator-" + name, name + ":7700"},
        [this](const v1::RequestClaim& claim, const RequestName& request) {
          return of(claim.directory()).submissions->FindBegun(request);
        });
    it.submissions = std::make_unique<Submissions>(
        Submissions::Dependencies{it.jobs.get(), it.ledger.get(), &numbers_, it.uploads.get(),
                                  [](const job::JobDefinition&) { return "1"; },
                                  [](const job::JobDefinition&) { return absl::OkStatus(); },
                                  &clock_, 0, it.claims.get(), name});
  }

  Initiator& of(const std::string& name) { return initiators_.at(name); }

  absl::StatusOr<ledger::Batch> Begin(const std::string& initiator,
                                      const std::string& id = "march") {
    v1::SubmitHeader header;
    header.set_job("shop");
    header.set_request_id(id);
    return of(initiator).submissions->Begin(header);
  }

  absl::Status BeginOf(const std::string& initiator, absl::string_view content) {
    v1::SubmitHeader header;
    header.set_job("shop");
    header.set_request_id("march");
    return of(initiator).submissions->Begin(header, std::nullopt, {.content = content}).status();
  }

  std::vector<uint64_t> OpenOf(const std::string& initiator) {
    return of(initiator).ledger->ListOpen().value();
  }

  // Returns once the ledger of the initiator has an open batch.
  uint64_t AwaitRecorded(const std::string& initiator) {
    for (;; base::LetOthersRun()) {
      const std::vector<uint64_t> open = OpenOf(initiator);
      if (!open.empty()) return open.front();
    }
  }

  // Makes `initiator` record a batch and die before the claim on its request id is written.
  uint64_t DieUndecided(const std::string& initiator) {
    const auto job = of(initiator).jobs->GetDefinition("shop").value();
    ledger::Batch batch;
    batch.number = static_cast<uint64_t>(numbers_.NextId().value());
    batch.request_id = "march";
    batch.job = job.name;
    batch.job_revision = job.revision;
    batch.job_definition = job.text;
    batch.undecided = batch.request_claimed = true;
    batch.handler_version = "1";
    EXPECT_TRUE(of(initiator).ledger->Create(batch).ok());
    Start(initiator);
    return batch.number;
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  sync::testing::MemorySyncStore shared_;
  sync::testing::MemorySyncStore counters_;
  sync::UniqueIdGenerator numbers_{&counters_, "numbers"};
  std::map<std::string, Initiator> initiators_;
};

TEST_F(SubmissionsTest, RecordABatchWhileItsRequestIdIsClaimedAndItsJobIsConfirmed) {
  // Neither call of the store goes on before the ledger has the batch.
  of("a").store->before_write = of("a").store->before_get = [this](absl::string_view) {
    EXPECT_TRUE(of("a").ledger->Get(AwaitRecorded("a"))->undecided);
  };
  const auto begun = Begin("a");
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_FALSE(begun->undecided);
  EXPECT_TRUE(begun->request_claimed);
  EXPECT_FALSE(of("a").ledger->Get(begun->number)->undecided);
}

TEST_F(SubmissionsTest, BeginNoBatchOfContentOfAnotherKind) {
  const absl::Status refused = BeginOf("a", "\x1F\x8B\x08 and so on");
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_NE(refused.message().find("gzip"), absl::string_view::npos) << refused;
  EXPECT_TRUE(OpenOf("a").empty());
}

TEST_F(SubmissionsTest, WithdrawABatchWhoseClaimIsLostWhileItIsRecorded) {
  std::optional<absl::StatusOr<ledger::Batch>> at_b;
  of("a").store->before_write = [&](absl::string_view) {
    AwaitRecorded("a");
    at_b = Begin("b");
  };
  const absl::Status lost = Begin("a").status();
  ASSERT_TRUE(at_b->ok()) << at_b->status();
  EXPECT_TRUE(absl::IsFailedPrecondition(lost)) << lost;
  EXPECT_EQ(rpc::Reason(lost)->reason, "REQUEST_ID_ELSEWHERE");
  EXPECT_THAT(OpenOf("a"), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(of("a").ledger->FindByRequestId("march").status()));
  EXPECT_THAT(OpenOf("b"), ElementsAre((*at_b)->number));
}

TEST_F(SubmissionsTest, WithdrawABatchThatTheStoreDoesNotDecideAndBeginItAgain) {
  of("a").store->before_write = [this](absl::string_view) { AwaitRecorded("a"); };
  shared_.FailNextWrite(absl::UnavailableError("no server"));
  EXPECT_TRUE(absl::IsUnavailable(Begin("a").status()));
  EXPECT_THAT(OpenOf("a"), IsEmpty());
  of("a").store->before_write = nullptr;
  shared_.FailNextGet(absl::UnavailableError("no server"));
  EXPECT_TRUE(absl::IsUnavailable(Begin("a").status()));
  EXPECT_THAT(OpenOf("a"), IsEmpty());
  EXPECT_TRUE(Begin("a").ok());
}

TEST_F(SubmissionsTest, SeeTheDefinitionThatWasAppliedAtAnotherInitiatorBefore) {
  ASSERT_TRUE(Begin("a", "february").ok());
  const auto applied = of("b").jobs->Apply(job::JobText("shop", "price"), std::nullopt);
  ASSERT_TRUE(applied.ok());
  EXPECT_NE(of("a").jobs->Recall("shop")->revision, applied->entry.revision) << "it is stale";
  const auto begun = Begin("a");
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_EQ(begun->job_revision, applied->entry.revision);
  EXPECT_EQ(OpenOf("a").size(), 2u) << "nothing stays of the one that was begun too early";
  EXPECT_EQ(of("a").jobs->Recall("shop")->revision, applied->entry.revision);
  EXPECT_EQ(Begin("a")->number, begun->number);
}

TEST_F(SubmissionsTest, RefuseAJobThatWasDeletedAtAnotherInitiator) {
  ASSERT_TRUE(of("b").jobs->Delete("shop").ok());
  const absl::Status refused = Begin("a").status();
  EXPECT_TRUE(absl::IsNotFound(refused)) << refused;
  EXPECT_THAT(OpenOf("a"), IsEmpty());
}

// The job is put back from the newest batch of it, as it would be without a memory of it.
TEST_F(SubmissionsTest, PutBackAJobThatTheBrokerLostThoughTheyRememberIt) {
  const auto first = Begin("a", "february");
  shared_.Clear();
  const auto begun = Begin("a");
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_EQ(begun->job_revision, first->job_revision);
  EXPECT_EQ(OpenOf("a").size(), 2u);
  EXPECT_TRUE(of("b").jobs->GetDefinition("shop").ok());
}

TEST_F(SubmissionsTest, DecideWhatAnInitiatorThatDiedHasLeftUndecided) {
  const uint64_t left = DieUndecided("a");
  EXPECT_TRUE(of("a").submissions->Decide(left).value());
  EXPECT_FALSE(of("a").ledger->Get(left)->undecided);
  EXPECT_TRUE(of("a").submissions->Decide(left).value());
  const absl::Status elsewhere = Begin("b").status();
  EXPECT_EQ(rpc::Reason(elsewhere)->reason, "REQUEST_ID_ELSEWHERE") << elsewhere;
}

TEST_F(SubmissionsTest, WithdrawWhatADeadInitiatorHasLeftWhenAnotherOneWasQuicker) {
  const uint64_t left = DieUndecided("a");
  const auto at_b = Begin("b");
  ASSERT_TRUE(at_b.ok()) << at_b.status();
  EXPECT_FALSE(of("a").submissions->Decide(left).value());
  EXPECT_THAT(OpenOf("a"), IsEmpty());
  EXPECT_FALSE(of("a").submissions->Decide(left).value());
}

TEST_F(SubmissionsTest, WithdrawWhatADeadInitiatorHasLeftOfAJobThatHasChanged) {
  const uint64_t left = DieUndecided("a");
  ASSERT_TRUE(of("b").jobs->Apply(job::JobText("shop", "price"), std::nullopt).ok());
  EXPECT_FALSE(of("a").submissions->Decide(left).value());
  EXPECT_TRUE(Begin("b").ok());
}

TEST_F(SubmissionsTest, LeaveABatchUndecidedWhileTheStoreDoesNotAnswer) {
  const uint64_t left = DieUndecided("a");
  shared_.FailNextGet(absl::UnavailableError("no server"));
  EXPECT_TRUE(absl::IsUnavailable(of("a").submissions->Decide(left).status()));
  EXPECT_THAT(OpenOf("a"), ElementsAre(left));
  EXPECT_TRUE(of("a").submissions->Decide(left).value());
}

TEST_F(SubmissionsTest, GoOnWithWhatADeadInitiatorHasLeftOnceItIsDecided) {
  const uint64_t left = DieUndecided("a");
  const auto again = Begin("a");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->number, left);
  EXPECT_FALSE(again->undecided);
}

TEST_F(SubmissionsTest, BeginAnewWhereWhatADeadInitiatorHasLeftIsWithdrawn) {
  const uint64_t left = DieUndecided("a");
  const auto applied = of("b").jobs->Apply(job::JobText("shop", "price"), std::nullopt);
  const auto begun = Begin("a");
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_NE(begun->number, left);
  EXPECT_EQ(begun->job_revision, applied->entry.revision);
  EXPECT_THAT(OpenOf("a"), ElementsAre(begun->number));
}

// More submits at once than calls go beside them, of a store that waits for all of them.
TEST_F(SubmissionsTest, DoNotWaitForEachOthersCalls) {
  constexpr int kSubmits = 2 * kCallsBeside;
  base::Mutex mu;
  base::CondVar changed;
  int waiting = 0;
  of("a").store->before_write = [&](absl::string_view) {
    base::MutexLock lock(&mu);
    ++waiting;
    changed.NotifyAll();
    while (waiting < kSubmits) changed.Wait(&mu);
  };
  std::vector<std::thread> submits;
  for (int i = 0; i < kSubmits; ++i) {
    submits.emplace_back([this, i] { EXPECT_TRUE(Begin("a", std::to_string(i)).ok()); });
  }
  for (std::thread& submit : submits) submit.join();
  EXPECT_EQ(OpenOf("a").size(), static_cast<size_t>(kSubmits));
}

}  // namespace
}  // namespace muster::initiator::submit
