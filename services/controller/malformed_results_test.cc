// SPDX-License-Identifier: Apache-2.0

// Messages of an output queue that no sound processor sends, beside sound ones.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/result_codec.h"
#include "tests/fakes/base/test_seed.h"
#include "tests/fakes/controller/controller_fixture.h"
#include "tests/fakes/proto/mutations.h"

namespace muster::controller {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Of item 0, whose sound result comes last.
class MalformedResultsTest : public ControllerTest {
 protected:
  // The name that a processor gives to the blob of a large result.
  static std::string BlobOf(uint32_t index) {
    return absl::StrCat("batch-7-item-", index, "-result-1-", std::string(32, '0'));
  }

  v1::ItemResult Claimed(uint32_t index) {
    v1::ItemResult result = Result(index);
    EXPECT_TRUE(blobs_->Put(BlobOf(index), result.aggregated().SerializeAsString()).ok());
    result.mutable_claimed_aggregated()->set_blob(BlobOf(index));
    return result;
  }
};

// An error of the blob store that was about the name stopped the controller, which began again with
// the same message.
TEST_F(MalformedResultsTest, AResultWithABlobNameThatIsNoneIsPutAsideAlone) {
  OpenBatch(3);
  for (const char* name : {"", "../x", "x"}) {
    v1::ItemResult result = Result(0);
    result.mutable_claimed_aggregated()->set_blob(name);
    PutQuietly({result});
  }
  PutQuietly({Result(1), Claimed(2), Result(0)});
  Start();
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(PoisonCauses(), ElementsAre(HasSubstr("blob"), HasSubstr("blob"), HasSubstr("blob")));
  EXPECT_THAT(Rows(), ElementsAre("ann 3.75"));
}

// A store that cannot read one blob still has the others.
TEST_F(MalformedResultsTest, AResultWhoseBlobCannotBeReadWaitsAlone) {
  OpenBatch(2);
  const v1::ItemResult unreadable = Claimed(0);
  ASSERT_TRUE(blobs_->Delete(BlobOf(0)).ok());
  std::filesystem::create_symlink("x", absl::StrCat(dir_.path(), "/blobs/", BlobOf(0), ".blob"));
  PutQuietly({unreadable, Result(1)});
  Start();
  host_->AwaitItems(1);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(Stats().stored(), 1);
  Put({Result(0)});
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50"));
}

// The controller would delete it once the first one is counted.
TEST_F(MalformedResultsTest, AResultDoesNotTakeTheBlobOfAnother) {
  OpenBatch(2);
  const v1::ItemResult sound = Claimed(1);
  v1::ItemResult thief = Result(0);
  thief.mutable_claimed_aggregated()->set_blob(BlobOf(1));
  PutQuietly({thief, sound, Result(0)});
  Start();
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(PoisonCauses(), ElementsAre(HasSubstr(BlobOf(1))));
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50"));
}

std::string InOneMessage(uint64_t batch, const std::vector<std::string>& parts) {
  v1::ItemResult whole;
  whole.set_batch(batch);
  for (const std::string& part : parts) whole.add_together(part);
  return whole.SerializeAsString();
}

// One field of a result is changed at a time. The other results are counted, and what is not
// counted is poison with its cause.
class MutatedResultsTest : public MalformedResultsTest,
                           public ::testing::WithParamInterface<bool> {};

TEST_P(MutatedResultsTest, TakeNoOtherResultWithThem) {
  const uint32_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("MUSTER_TEST_SEED=", seed));
  std::vector<v1::ItemResult> sound = {Result(0), DeadLetter(0, "it died"), Claimed(0)};
  for (v1::ItemResult& result : sound) {
    result.mutable_put()->set_seconds(1'700'000'000);
    result.set_trace_context(std::string(26, 'x'));
  }
  sound.push_back(Result(0));
  v1::Aggregated with_outputs = sound.back().aggregated();
  v1::OutputRecord* const record = with_outputs.add_outputs();
  record->set_line(1);
  record->add_fields("7");
  *sound.back().mutable_aggregated_with_outputs() = with_outputs;
  std::vector<proto::testing::Mutation> mutations;
  for (const v1::ItemResult& result : sound) {
    for (auto& mutation : proto::testing::MutationsOf(result, /*random=*/50, seed)) {
      // A message with a part for a newer controller waits for that as a whole.
      const absl::Status error = item::FirstError(item::DecodeResults(mutation.body, blobs_.get()));
      if (absl::IsUnimplemented(error)) continue;
      mutations.push_back(std::move(mutation));
    }
  }
  const int items = static_cast<int>(mutations.size()) + 1;
  OpenBatch(items);
  const bool together = GetParam();
  std::vector<std::string> bodies;
  for (int i = 1; i < items; ++i) {
    const std::string neighbour = Result(static_cast<uint32_t>(i), "neighbour").SerializeAsString();
    const std::string& mutated = mutations[static_cast<size_t>(i) - 1].body;
    if (together) {
      bodies.push_back(InOneMessage(kBatch, {mutated, neighbour}));
    } else {
      bodies.push_back(mutated);
      bodies.push_back(neighbour);
    }
  }
  PutBodies(bodies);
  PutQuietly({Result(0)});
  Start();
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_EQ(GetProgress().items(), items);
  EXPECT_LE(GetProgress().items_dead, 1);
  const base::Decimal all = *base::Decimal::FromUnits(int64_t{125} * (items - 1), 2);
  EXPECT_THAT(Rows(), ::testing::Contains(absl::StrCat("neighbour ", all.ToString())));
  EXPECT_THAT(PoisonCauses(), Each(Not(::testing::IsEmpty())));
  EXPECT_TRUE(report::VerifyReceipt(**sqlite_->Read(), kBatch)->ok());
}

INSTANTIATE_TEST_SUITE_P(AloneAndTogether, MutatedResultsTest, ::testing::Bool(),
                         [](const auto& together) {
                           return together.param ? "Together" : "Alone";
                         });

}  // namespace
}  // namespace muster::controller
