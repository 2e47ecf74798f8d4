// SPDX-License-Identifier: Apache-2.0

// Initiators with a ledger each, and one sync store between them.
#include "services/initiator/submit/request_claims.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/status.h"
#include "services/initiator/submit/submissions.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/job/job_text.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::submit {
namespace {

using ::testing::HasSubstr;

class RequestClaimsTest : public ::testing::Test {
 protected:
  struct Initiator {
    std::string data_dir;
    std::unique_ptr<ledger::BatchLedger> ledger;
    std::unique_ptr<Uploads> uploads;
    std::unique_ptr<RequestClaims> claims;
    std::unique_ptr<Submissions> submissions;
    bool answers = true;
  };

  RequestClaimsTest() {
    EXPECT_TRUE(jobs_.Apply(job::JobText("shop"), std::nullopt).ok());
    for (const std::string name : {"a", "b"}) StartInitiator(name);
  }

  void StartInitiator(const std::string& name) {
    Initiator& it = initiators_[name];
    it.data_dir = dir_ / name;
    it.uploads = Uploads::Open(it.data_dir + "/uploads").value();
    it.ledger = backend::OpenBatchLedger(backend::DataDirUrls(it.data_dir).ledger,
                                         backend::Mode::kReadWrite)
                    .value();
    it.claims = std::make_unique<RequestClaims>(
        &shared_, RequestClaims::Owner{name, "initiator-" + name, name + ":7700"},
        [this](const v1::RequestClaim& claim, const RequestName& request) {
          return Ask(claim, request);
        });
    it.submissions = std::make_unique<Submissions>(Submissions::Dependencies{
        &jobs_, it.ledger.get(), &numbers_, it.uploads.get(),
        [](const job::JobDefinition&) { return "1"; },
        [](const job::JobDefinition&) { return absl::OkStatus(); }, &clock_, 0, it.claims.get()});
  }

  // What the owner of the claim answers.
  absl::StatusOr<uint64_t> Ask(const v1::RequestClaim& claim, const RequestName& request) {
    const Initiator& owner = initiators_.at(claim.directory());
    if (!owner.answers) return absl::UnavailableError("no answer");
    return owner.submissions->FindBegun(request);
  }

  absl::StatusOr<ledger::Batch> Begin(const std::string& initiator, const std::string& id = "march",
                                      const std::string& tenant = "") {
    v1::SubmitHeader header;
    header.set_job("shop");
    header.set_request_id(id);
    header.set_tenant(tenant);
    return initiators_.at(initiator).submissions->Begin(header);
  }

  size_t BatchesOf(const std::string& initiator) {
    return initiators_.at(initiator).ledger->ListOpen()->size();
  }

  // As an initiator that dies before it records the batch.
  absl::Status ClaimOnly(const std::string& initiator, uint64_t number = 1000) {
    ledger::Batch batch;
    batch.number = number;
    batch.request_id = "march";
    return initiators_.at(initiator).claims->Claim(batch);
  }

  // As a NATS server that was wiped.
  void Lose(const ledger::Batch& batch) {
    const auto claim = shared_.Get(ClaimKeyOf(batch));
    ASSERT_TRUE(claim.ok()) << claim.status();
    ASSERT_TRUE(*shared_.TryDelete(ClaimKeyOf(batch), claim->version));
  }

  absl::Status RestoreLost(const std::string& initiator) {
    Initiator& it = initiators_.at(initiator);
    return it.claims->RestoreLost(it.ledger.get());
  }

  static void ExpectElsewhere(const absl::Status& status, const ledger::Batch& batch,
                              const std::string& initiator) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("belongs to batch ", batch.number,
                                                         " of initiator initiator-", initiator,
                                                         " (", initiator, ":7700)")));
    const rpc::ErrorReason expected{"REQUEST_ID_ELSEWHERE",
                                    {{"batch", absl::StrCat(batch.number)},
                                     {"initiator", "initiator-" + initiator},
                                     {"address", initiator + ":7700"}}};
    EXPECT_EQ(rpc::Reason(status), expected);
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  sync::testing::MemorySyncStore records_;  // of jobs and batch numbers
  job::JobRegistry jobs_{&records_, &clock_};
  sync::UniqueIdGenerator numbers_{&records_, "numbers"};
  sync::testing::MemorySyncStore shared_;  // of claims
  std::map<std::string, Initiator> initiators_;
};

TEST_F(RequestClaimsTest, MakeOneBatchOfARequestThatReachesTwoInitiators) {
  const auto first = Begin("a");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->request_claimed);
  ExpectElsewhere(Begin("b").status(), *first, "a");
  EXPECT_EQ(BatchesOf("b"), 0u);
  EXPECT_EQ(Begin("a")->number, first->number);
  EXPECT_TRUE(Begin("b", "april").ok());
}

TEST_F(RequestClaimsTest, LetOneOfTwoInitiatorsWinThatBeginAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const std::string id = absl::StrCat("id ", round);
    std::optional<absl::StatusOr<ledger::Batch>> at_a, at_b;
    std::thread other([&] { at_a = Begin("a", id); });
    at_b = Begin("b", id);
    other.join();
    EXPECT_NE(at_a->ok(), at_b->ok()) << at_a->status() << at_b->status();
    if (at_a->ok()) {
      ExpectElsewhere(at_b->status(), **at_a, "a");
    } else {
      ExpectElsewhere(at_a->status(), **at_b, "b");
    }
  }
  EXPECT_EQ(BatchesOf("a") + BatchesOf("b"), 20u);
}

TEST_F(RequestClaimsTest, CostOneWriteForABatchAndNoRead) {
  shared_.FailNextGet(absl::InternalError("was read"));
  EXPECT_TRUE(Begin("a").ok());
  EXPECT_TRUE(Begin("a").ok());
  EXPECT_EQ(shared_.writes_tried(), 1);
}

TEST_F(RequestClaimsTest, AreTakenOverWhenTheirBatchWasNeverBegun) {
  ASSERT_TRUE(ClaimOnly("a").ok());
  const auto begun = Begin("b");
  ASSERT_TRUE(begun.ok()) << begun.status();
  ExpectElsewhere(Begin("a").status(), *begun, "b");
  EXPECT_EQ(BatchesOf("a"), 0u);
}

TEST_F(RequestClaimsTest, OfTheSameDataDirectoryAreRenewedWithoutAQuestion) {
  ASSERT_TRUE(ClaimOnly("a").ok());
  initiators_["a"].answers = false;
  EXPECT_TRUE(Begin("a").ok());
}

TEST_F(RequestClaimsTest, AreTakenOverWhenTheirBatchIsCancelled) {
  const auto first = Begin("a");
  ASSERT_TRUE(initiators_["a"].ledger->Cancel(first->number, clock_.Now(), "").ok());
  const auto second = Begin("b");
  ASSERT_TRUE(second.ok()) << second.status();
  ExpectElsewhere(Begin("a").status(), *second, "b");
}

TEST_F(RequestClaimsTest, StandWhileTheirOwnerCannotBeAsked) {
  const auto first = Begin("a");
  initiators_["a"].answers = false;
  const absl::Status refused = Begin("b").status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("initiator-a (a:7700), which cannot be asked"));
  EXPECT_EQ(BatchesOf("b"), 0u);
  initiators_["a"].answers = true;
  ExpectElsewhere(Begin("b").status(), *first, "a");
}

// While the owner records its batch, it does not say that it has none.
TEST_F(RequestClaimsTest, AreNotTakenOverWhileTheirBatchIsBeingRecorded) {
  std::optional<absl::StatusOr<ledger::Batch>> at_b;
  std::thread other;
  Initiator& a = initiators_["a"];
  a.submissions = std::make_unique<Submissions>(Submissions::Dependencies{
      &jobs_, a.ledger.get(), &numbers_, a.uploads.get(),
      [&](const job::JobDefinition&) -> absl::StatusOr<std::string> {
        EXPECT_TRUE(ClaimOnly("a").ok());
        other = std::thread([&] { at_b = Begin("b"); });
        return "1";
      },
      [](const job::JobDefinition&) { return absl::OkStatus(); }, &clock_, 0, a.claims.get()});
  const auto first = Begin("a");
  other.join();
  ASSERT_TRUE(first.ok()) << first.status();
  ExpectElsewhere(at_b->status(), *first, "a");
}

TEST_F(RequestClaimsTest, KeepTenantsApart) {
  EXPECT_TRUE(Begin("a", "march", "acme").ok());
  EXPECT_TRUE(Begin("b", "march", "globex").ok());
  EXPECT_FALSE(Begin("b", "march", "acme").ok());
  ledger::Batch one, other;
  one.tenant = "ab", one.request_id = "c";
  other.tenant = "a", other.request_id = "bc";
  EXPECT_NE(ClaimKeyOf(one), ClaimKeyOf(other));
}

// On one initiator the id was refused as another tenant's, or answered as its batch.
TEST_F(RequestClaimsTest, KeepTenantsApartOnOneInitiator) {
  const auto acme = Begin("a", "march", "acme");
  const auto globex = Begin("a", "march", "globex");
  const auto none = Begin("a", "march");
  ASSERT_TRUE(acme.ok() && globex.ok() && none.ok()) << globex.status() << none.status();
  EXPECT_EQ(BatchesOf("a"), 3u);
  EXPECT_EQ(Begin("a", "march", "acme")->number, acme->number);
  EXPECT_EQ(Begin("a", "march", "globex")->number, globex->number);
  EXPECT_EQ(Begin("a", "march")->number, none->number);
  ExpectElsewhere(Begin("b", "march", "acme").status(), *acme, "a");
  ExpectElsewhere(Begin("b", "march", "globex").status(), *globex, "a");
}

// It names no tenant, and must not begin a second batch.
TEST_F(RequestClaimsTest, AreFoundByAnInitiatorOfAnOlderMuster) {
  const auto acme = Begin("a", "march", "acme");
  EXPECT_EQ(*initiators_["a"].submissions->FindBegunOfAny("march"), acme->number);
  const auto globex = Begin("a", "march", "globex");
  EXPECT_EQ(*initiators_["a"].submissions->FindBegunOfAny("march"), globex->number);
  EXPECT_TRUE(absl::IsNotFound(initiators_["a"].submissions->FindBegunOfAny("april").status()));
}

TEST_F(RequestClaimsTest, EndWithTheirBatch) {
  const auto first = Begin("a");
  ASSERT_TRUE(initiators_["a"].claims->Release(*first).ok());
  EXPECT_EQ(shared_.Get(ClaimKeyOf(*first))->version, sync::kAbsent);
  ASSERT_TRUE(initiators_["a"].claims->Release(*first).ok());
  const auto second = Begin("b");
  ASSERT_TRUE(second.ok()) << second.status();
  // The claim is another batch's by now.
  ASSERT_TRUE(initiators_["a"].claims->Release(*first).ok());
  ExpectElsewhere(ClaimOnly("a"), *second, "b");
}

// A NATS server was wiped while an initiator was down: the other one began a second batch of its
// request.
TEST_F(RequestClaimsTest, ThatAreLostComeBackWithTheStartOfTheirOwner) {
  std::vector<ledger::Batch> batches;
  for (const char* const id : {"march", "april", "may"}) batches.push_back(*Begin("a", id));
  for (const ledger::Batch& batch : batches) Lose(batch);
  const auto taken = Begin("b", "april");
  ASSERT_TRUE(taken.ok()) << taken.status();
  ASSERT_TRUE(RestoreLost("a").ok());
  ExpectElsewhere(Begin("b", "may").status(), batches[2], "a");
  ExpectElsewhere(Begin("b", "march").status(), batches[0], "a");
  EXPECT_EQ(Begin("b", "april")->number, taken->number) << "it was faster";
}

TEST_F(RequestClaimsTest, ThatAreLostComeBackThoughYoungerOnesAreThere) {
  const auto lost = Begin("a", "march");
  Lose(*lost);
  ASSERT_TRUE(Begin("a", "april").ok());
  ASSERT_TRUE(RestoreLost("a").ok());
  ExpectElsewhere(Begin("b", "march").status(), *lost, "a");
}

TEST_F(RequestClaimsTest, ThatTheStoreDoesNotConfirmBeginNoBatch) {
  shared_.FailNextWrite(absl::UnavailableError("no server"));
  EXPECT_TRUE(absl::IsUnavailable(Begin("a").status()));
  EXPECT_EQ(BatchesOf("a"), 0u);
  EXPECT_TRUE(Begin("a").ok());
}

TEST_F(RequestClaimsTest, ThatCannotBeReadAreNamed) {
  ledger::Batch batch;
  batch.request_id = "march";
  shared_.Overwrite(ClaimKeyOf(batch), "\xff");
  const absl::Status damaged = Begin("a").status();
  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  EXPECT_THAT(damaged.message(), HasSubstr(ClaimKeyOf(batch)));
}

}  // namespace
}  // namespace muster::initiator::submit
