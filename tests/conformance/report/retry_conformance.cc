// SPDX-License-Identifier: Apache-2.0

// Rejections are retried once.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/conformance/report/report_conformance.h"

namespace muster::report::conformance {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

void LinkRetryTests() {}

namespace {

constexpr uint64_t kRetry = 9;  // a batch that retries

// Item and line of each.
std::vector<std::string> Claimed(ReportReader& reader, uint64_t batch, int64_t retry,
                                 RejectionPosition after = {}, size_t max = 1000) {
  std::vector<std::string> positions;
  const auto claimed = reader.ClaimedRejections(batch, retry, after, max);
  EXPECT_TRUE(claimed.ok()) << claimed.status();
  for (const RejectionPosition& position : claimed.value_or(std::vector<RejectionPosition>())) {
    positions.push_back(absl::StrCat(position.item, ":", position.line));
  }
  return positions;
}

// "21 in 9", "2 was 21": the batch that retries a line, and the line that it retries.
std::vector<std::string> Links(ReportReader& reader, uint64_t batch) {
  std::vector<std::string> links;
  const auto add = [&](const RejectionRow& row) {
    std::string link = absl::StrCat(row.line);
    if (row.retried_in != 0) absl::StrAppend(&link, " in ", row.retried_in);
    if (row.retry_of_line != 0) absl::StrAppend(&link, " was ", row.retry_of_line);
    links.push_back(std::move(link));
  };
  EXPECT_TRUE(reader.ForEachRejection(batch, 0, 1000, add).ok());
  std::vector<std::string> behind = std::move(links);
  links.clear();
  EXPECT_TRUE(reader.ForEachRejectionAfter(batch, {}, 1000, add).ok());
  EXPECT_EQ(links, behind);
  return links;
}

RetryClaims Claim(ReportStore* store, const RetrySelection& which, int64_t max = 1000) {
  absl::StatusOr<RetryClaims> claimed = store->ClaimRejections(7, which, max);
  EXPECT_TRUE(claimed.ok()) << claimed.status();
  return claimed.value_or(RetryClaims());
}

int64_t Record(ReportStore* store, int64_t retry, const std::vector<RetriedTransaction>& placed,
               uint64_t retried_in) {
  const absl::StatusOr<int64_t> left = store->RecordRetry(7, retry, placed, retried_in);
  EXPECT_TRUE(left.ok()) << left.status();
  return left.value_or(-1);
}

void Forget(ReportStore* store, uint64_t batch) {
  for (bool done = false; !done;) {
    const absl::StatusOr<bool> forgotten = store->ForgetBatch(batch, 2);
    ASSERT_TRUE(forgotten.ok()) << forgotten.status();
    done = *forgotten;
  }
}

// The items of batch 7 that are claimed as wholes, and the batch that retries each.
std::map<uint64_t, uint64_t> Retried(ReportReader& reader) {
  const auto retried = reader.RetriedItems(7, {0, 1, 2});
  EXPECT_TRUE(retried.ok()) << retried.status();
  return retried.value_or(std::map<uint64_t, uint64_t>());
}

// Records a retry of item 2 as a whole, of which three transactions stand in a new batch.
void RetryItem2(ReportStore* store) {
  const int64_t retry = Claim(store, {.items = {2}}).claims.at(0).retry;
  Record(store, retry, {{2, 21, 2}, {2, 22, 3}, {2, 23, 4}, {2, kWholeItem, 2}}, 0);
  EXPECT_EQ(Record(store, retry, {}, kRetry), 3);
}

}  // namespace

TEST_P(ReportConformanceTest, ClaimsARejectionOnceForARetry) {
  const Receipt receipt = CompleteWithRejections();
  const RetryClaims claimed = Claim(store(), {{11}});
  ASSERT_EQ(claimed.claims.size(), 1);
  const RetryClaim& claim = claimed.claims.front();
  EXPECT_EQ(claim, (RetryClaim{claim.retry, 1, 0}));
  EXPECT_THAT(Claimed(*Read(), kBatch, claim.retry), ElementsAre("1:11"));
  EXPECT_THAT(Links(*Read(), kBatch), ElementsAre("1", "11", "21")) << "not submitted yet";
  EXPECT_EQ(Claim(store(), {{11}}).claims, claimed.claims) << "a call that was cut off goes on";
  EXPECT_EQ(Record(store(), claim.retry, {{1, 11, 2}}, kRetry), 1);
  Restart();
  EXPECT_THAT(Claim(store(), {{11}}).claims, ElementsAre(RetryClaim{claim.retry, 1, kRetry}));
  EXPECT_THAT(Links(*Read(), kBatch), ElementsAre("1", "11 in 9", "21"));
  EXPECT_THAT(GetProgress().retried_in, ElementsAre(kRetry));
  EXPECT_EQ(GetProgress().rejected, 3) << "what is counted stays";
  EXPECT_EQ(Complete(Facts(3)).Checksum(), receipt.Checksum());
}

TEST_P(ReportConformanceTest, ClaimsNewLinesBesideThoseThatAreRetried) {
  CompleteWithRejections();
  const int64_t first = Claim(store(), {{21}}).claims.front().retry;
  Record(store(), first, {{2, 21, 2}}, kRetry);
  const RetryClaims both = Claim(store(), {{21, 1, 21}});
  ASSERT_EQ(both.claims.size(), 2);
  EXPECT_EQ(both.claims[0], (RetryClaim{first, 1, kRetry}));
  EXPECT_EQ(both.claims[1], (RetryClaim{both.claims[1].retry, 1, 0}));
  EXPECT_THAT(Claimed(*Read(), kBatch, both.claims[1].retry), ElementsAre("0:1"));
}

TEST_P(ReportConformanceTest, ClaimsAllThatIsLeftInParts) {
  CompleteWithRejections();
  Record(store(), Claim(store(), {{11}}).claims.front().retry, {}, 8);
  const RetryClaims first = Claim(store(), {}, 1);
  ASSERT_EQ(first.claims.size(), 1);
  EXPECT_TRUE(first.more);
  EXPECT_THAT(Claimed(*Read(), kBatch, first.claims[0].retry), ElementsAre("0:1"));
  EXPECT_EQ(Claim(store(), {}, 1).claims, first.claims) << "before it claims others";
  Record(store(), first.claims[0].retry, {}, kRetry);
  const RetryClaims second = Claim(store(), {}, 1);
  EXPECT_FALSE(second.more);
  EXPECT_THAT(Claimed(*Read(), kBatch, second.claims.at(0).retry), ElementsAre("2:21"));
  Record(store(), second.claims[0].retry, {}, 10);
  const absl::Status nothing = store()->ClaimRejections(kBatch, {}, 1).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(nothing)) << nothing;
  EXPECT_THAT(nothing.message(), HasSubstr("nothing is left to retry of batch 7"));
}

TEST_P(ReportConformanceTest, ListsWhatIsClaimedPageByPage) {
  CompleteWithRejections();
  const int64_t retry = Claim(store(), {}).claims.at(0).retry;
  EXPECT_THAT(Claimed(*Read(), kBatch, retry, {}, 2), ElementsAre("0:1", "1:11"));
  EXPECT_THAT(Claimed(*Read(), kBatch, retry, {1, 11}, 2), ElementsAre("2:21"));
  EXPECT_THAT(Claimed(*Read(), kBatch, retry, {2, 21}, 2), IsEmpty());
}

TEST_P(ReportConformanceTest, NamesTheLineThatWasRetried) {
  CompleteWithRejections();
  const int64_t retry = Claim(store(), {}).claims.at(0).retry;
  Record(store(), retry, {{0, 1, 1}, {1, 11, 5}, {2, 21, 11}}, 0);
  Record(store(), retry, {}, kRetry);
  ASSERT_TRUE(store()->RegisterBatch(Shop(kRetry)).ok());
  CountedItem again = Item(1, "ann", "1.00", 1);  // its line 11 is rejected
  again.batch = kRetry;
  Commit({again});
  EXPECT_THAT(Links(*Read(), kRetry), ElementsAre("11 was 21"));
  EXPECT_EQ(GetProgress(kRetry).retry_of, kBatch);
  EXPECT_THAT(GetProgress(kRetry).retried_in, IsEmpty());
}

TEST_P(ReportConformanceTest, FreesWhatCannotBeRetried) {
  CompleteWithRejections();
  const int64_t retry = Claim(store(), {{1, 11}}).claims.at(0).retry;
  EXPECT_EQ(Record(store(), retry, {{0, 1, 0}}, 0), 1);
  EXPECT_THAT(Claimed(*Read(), kBatch, retry), ElementsAre("1:11"));
  EXPECT_EQ(Record(store(), retry, {{1, 11, 0}}, 0), 0);
  EXPECT_TRUE(absl::IsNotFound(store()->RecordRetry(kBatch, retry, {}, kRetry).status()));
  EXPECT_EQ(Claim(store(), {}).claims.at(0).transactions, 3);
}

TEST_P(ReportConformanceTest, RefusesWhatCannotBeClaimed) {
  EXPECT_TRUE(absl::IsNotFound(store()->ClaimRejections(kRetry, {}, 1).status()));
  Commit({Item(0, "ann", "1.00", 1)});
  const absl::Status open = store()->ClaimRejections(kBatch, {{1}}, 1).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(open)) << open;
  EXPECT_THAT(open.message(), HasSubstr("is not complete"));
  Complete(Facts(1));
  const absl::Status other = store()->ClaimRejections(kBatch, {{1, 2}}, 1).status();
  EXPECT_TRUE(absl::IsNotFound(other)) << other;
  EXPECT_EQ(
      other.message(),
      "batch 7 has rejected no transaction at line 2; `muster batch rejections 7` shows those "
      "that it has");
  EXPECT_THAT(Links(*Read(), kBatch), ElementsAre("1")) << "nothing of it was claimed";
  const RetryClaim claim = Claim(store(), {{1}}).claims.at(0);
  EXPECT_EQ(claim.transactions, 1);
  Record(store(), claim.retry, {}, kRetry);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(store()->RecordRetry(kBatch, claim.retry, {}, 8).status()));
}

TEST_P(ReportConformanceTest, FreesTheRejectionsOfABatchThatIsForgotten) {
  CompleteWithRejections();
  const int64_t retry = Claim(store(), {}).claims.at(0).retry;
  Record(store(), retry, {{0, 1, 1}, {1, 11, 2}, {2, 21, 3}}, kRetry);
  ASSERT_TRUE(store()->RegisterBatch(Shop(kRetry)).ok());
  Forget(store(), kRetry);
  EXPECT_THAT(Links(*Read(), kBatch), ElementsAre("1", "11", "21"));
  EXPECT_THAT(GetProgress().retried_in, IsEmpty());
  Advance(absl::Microseconds(1));
  const RetryClaim again = Claim(store(), {}).claims.at(0);
  EXPECT_EQ(again.transactions, 3);
  EXPECT_NE(again.retry, retry) << "its request id belongs to the batch that is gone";
}

TEST_P(ReportConformanceTest, ClaimsWhatWasFreedBeforeWhatIsClaimed) {
  CompleteWithRejections();
  for (const uint64_t batch : {kRetry, kRetry + 1}) {
    Record(store(), Claim(store(), {}, 1).claims.at(0).retry, {}, batch);
  }
  Forget(store(), kRetry);
  const RetryClaims freed = Claim(store(), {}, 1);
  EXPECT_THAT(Claimed(*Read(), kBatch, freed.claims.at(0).retry), ElementsAre("0:1"));
  EXPECT_TRUE(freed.more);
  Record(store(), freed.claims[0].retry, {{0, 1, 0}}, 0);
  const int64_t all = Claim(store(), {}).claims.at(0).retry;
  EXPECT_THAT(Claimed(*Read(), kBatch, all), ElementsAre("0:1", "2:21"));
}

TEST_P(ReportConformanceTest, ClaimsWhatARedriveHasRejectedBelowAClaimOfAll) {
  CommitAll({Dead(0, "no"), Item(1, "ann", "1.00", 1), Item(2, "bob", "1.00", 1)});
  Complete(Facts(3));
  Record(store(), Claim(store(), {.rejections_only = true}).claims.at(0).retry, {}, kRetry);
  ASSERT_TRUE(store()->ReopenDeadLettered(kBatch, {0}).ok());
  CommitAll({Item(0, "ann", "1.00", 1)});
  Complete(Facts(3));
  const RetryClaims again = Claim(store(), {});
  ASSERT_EQ(again.claims.size(), 1);
  EXPECT_THAT(Claimed(*Read(), kBatch, again.claims[0].retry), ElementsAre("0:1"));
}

// `muster batch retry --all` said that nothing was left.
TEST_P(ReportConformanceTest, ClaimsWhatALateResultHasRejectedBelowAClaimOfAll) {
  CommitAll({Dead(0, "no"), Item(1, "ann", "1.00", 1), Item(2, "bob", "1.00", 1)});
  Complete(Facts(3));
  Record(store(), Claim(store(), {.rejections_only = true}).claims.at(0).retry, {}, kRetry);
  CommitAll({Item(0, "ann", "1.00", 1)});  // its worker was only slow
  Complete(Facts(3));
  const RetryClaims again = Claim(store(), {});
  ASSERT_EQ(again.claims.size(), 1);
  EXPECT_THAT(Claimed(*Read(), kBatch, again.claims[0].retry), ElementsAre("0:1"));
}

// A retry that had found the batch complete claims beside a redrive.
TEST_P(ReportConformanceTest, ClaimsWhatARedriveHasRejectedBelowAClaimThatCameWithinIt) {
  CommitAll({Dead(0, "no"), Item(1, "ann", "1.00", 1), Item(2, "bob", "1.00", 1)});
  Complete(Facts(3));
  ASSERT_TRUE(store()->ReopenDeadLettered(kBatch, {0}).ok());
  Record(store(), Claim(store(), {}).claims.at(0).retry, {}, kRetry);
  CommitAll({Item(0, "ann", "1.00", 1)});
  Complete(Facts(3));
  const RetryClaims again = Claim(store(), {});
  ASSERT_EQ(again.claims.size(), 1);
  EXPECT_THAT(Claimed(*Read(), kBatch, again.claims[0].retry), ElementsAre("0:1"));
}

TEST_P(ReportConformanceTest, ForgetsTheRetriesOfABatchWithIt) {
  CompleteWithRejections();
  const int64_t retry = Claim(store(), {}).claims.at(0).retry;
  Record(store(), retry, {{0, 1, 11}}, kRetry);
  ASSERT_TRUE(store()->RegisterBatch(Shop(kRetry)).ok());
  CountedItem again = Item(1, "ann", "1.00", 1);
  again.batch = kRetry;
  Commit({again});
  Forget(store(), kBatch);
  EXPECT_EQ(GetProgress(kRetry).retry_of, 0);
  EXPECT_THAT(Links(*Read(), kRetry), ElementsAre("11"));
  EXPECT_TRUE(absl::IsNotFound(store()->RecordRetry(kBatch, retry, {}, kRetry).status()));
}

TEST_P(ReportConformanceTest, ClaimsADeadItemOnceForARetry) {
  const Receipt receipt = CompleteWithDead();
  const RetryClaims claimed = Claim(store(), {.items = {2}});
  ASSERT_EQ(claimed.claims.size(), 1);
  const int64_t retry = claimed.claims[0].retry;
  EXPECT_EQ(claimed.claims[0], (RetryClaim{retry, 10, 0}));
  EXPECT_THAT(Claimed(*Read(), kBatch, retry, kBeforeAllClaimed), ElementsAre("2:0"));
  EXPECT_EQ(Claim(store(), {.items = {2, 2}}).claims, claimed.claims) << "it goes on";
  EXPECT_THAT(Retried(*Read()), ElementsAre(Pair(2, 0)));
  // One of its transactions is longer than a record may be, say.
  Record(store(), retry, {{2, 21, 2}, {2, 22, 3}}, 0);
  EXPECT_THAT(Claimed(*Read(), kBatch, retry, kBeforeAllClaimed), ElementsAre("2:0"))
      << "a call that was cut off takes all of the item again";
  Record(store(), retry, {{2, 21, 2}, {2, 22, 3}, {2, 23, 4}, {2, kWholeItem, 2}}, 0);
  EXPECT_EQ(Record(store(), retry, {}, kRetry), 3);
  Restart();
  EXPECT_THAT(Claim(store(), {.items = {2}}).claims, ElementsAre(RetryClaim{retry, 3, kRetry}));
  EXPECT_THAT(Retried(*Read()), ElementsAre(Pair(2, kRetry)));
  EXPECT_EQ(Read()->DeadLetters(kBatch, 0, 9)->at(0).retried_in, 0);
  EXPECT_EQ(Read()->DeadLetters(kBatch, 0, 9)->at(1).retried_in, kRetry);
  EXPECT_THAT(GetProgress().retried_in, ElementsAre(kRetry));
  EXPECT_EQ(GetProgress().dead_lettered, 20) << "what is counted stays";
  EXPECT_EQ(Complete(Facts(3)).Checksum(), receipt.Checksum());
}

TEST_P(ReportConformanceTest, ClaimsDeadItemsWithAllThatFailed) {
  CompleteWithDead();
  const RetryClaims rejections = Claim(store(), {.rejections_only = true});
  EXPECT_THAT(Claimed(*Read(), kBatch, rejections.claims.at(0).retry), ElementsAre("1:11"));
  EXPECT_FALSE(rejections.more);
  Record(store(), rejections.claims[0].retry, {{1, 11, 0}}, 0);  // free again
  const RetryClaims some = Claim(store(), {}, 5);
  EXPECT_THAT(Claimed(*Read(), kBatch, some.claims.at(0).retry, kBeforeAllClaimed),
              ElementsAre("0:0", "1:11"));
  EXPECT_EQ(some.claims[0].transactions, 11) << "all of the last item";
  EXPECT_TRUE(some.more);
  Record(store(), some.claims[0].retry, {}, kRetry);
  const RetryClaims rest = Claim(store(), {}, 5);
  EXPECT_THAT(Claimed(*Read(), kBatch, rest.claims.at(0).retry), ElementsAre("2:0"));
  EXPECT_FALSE(rest.more);
  Record(store(), rest.claims[0].retry, {}, kRetry + 1);
  const absl::Status nothing = store()->ClaimRejections(kBatch, {}, 5).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(nothing)) << nothing;
  EXPECT_THAT(nothing.message(), HasSubstr("nothing is left to retry of batch 7"));
}

TEST_P(ReportConformanceTest, CountsARetriedItemInNoOtherWay) {
  CompleteWithDead();
  const int64_t retry = Claim(store(), {.items = {2}}).claims.at(0).retry;
  const auto refused = [this] {
    const absl::Status reopened = store()->ReopenDeadLettered(kBatch, {0, 2});
    EXPECT_TRUE(absl::IsFailedPrecondition(reopened)) << reopened;
    return std::string(reopened.message());
  };
  EXPECT_EQ(refused(),
            "item 7/2 is about to be retried: `muster batch retry 7 --item 2` goes on with it");
  Record(store(), retry, {{2, 21, 2}, {2, kWholeItem, 2}}, kRetry);
  EXPECT_EQ(refused(), "item 7/2 is retried in batch 9");
  EXPECT_EQ(GetProgress().items_dead, 2) << "nothing of it was reopened";
  EXPECT_FALSE(GetProgress().reopened);
  // A result that was on its way, or of a message that was redriven all the same.
  EXPECT_THAT(Commit({Item(2, "bob", "1.00", 1)}), ElementsAre(Verdict::kDuplicate));
  EXPECT_THAT(Rows("by_customer"), ElementsAre("ann: 1.00 1"));
  EXPECT_THAT(Commit({Item(0, "bob", "1.00", 1)}), ElementsAre(Verdict::kCounted)) << "not claimed";
}

TEST_P(ReportConformanceTest, ClaimsNoItemThatIsOpenAgain) {
  CompleteWithDead();
  ASSERT_TRUE(store()->ReopenDeadLettered(kBatch, {2}).ok());
  const absl::Status open = store()->ClaimRejections(kBatch, {.items = {2}}, 1).status();
  EXPECT_TRUE(absl::IsNotFound(open)) << open;
  EXPECT_EQ(
      open.message(),
      "batch 7 has given up no item 2; `muster batch dead-letters 7` shows those that it has");
  const absl::Status counted = store()->ClaimRejections(kBatch, {.items = {0, 1}}, 1).status();
  EXPECT_TRUE(absl::IsNotFound(counted)) << counted;
  EXPECT_THAT(Retried(*Read()), IsEmpty()) << "nothing of it was claimed";
}

TEST_P(ReportConformanceTest, NamesTheLineOfADeadItemThatWasRetried) {
  CompleteWithDead();
  RetryItem2(store());
  ASSERT_TRUE(store()->RegisterBatch(Shop(kRetry)).ok());
  for (const int64_t line : {2, 3}) {
    CountedItem again = Item(static_cast<uint64_t>(line), "ann", "1.00", 1);
    again.batch = kRetry;
    again.rejections[0].line = line;
    Commit({again});
  }
  EXPECT_THAT(Links(*Read(), kRetry), ElementsAre("2 was 21", "3 was 22"));
  EXPECT_EQ(GetProgress(kRetry).retry_of, kBatch);
}

TEST_P(ReportConformanceTest, FreesADeadItemThatCannotBeRetried) {
  CompleteWithDead();
  const int64_t retry = Claim(store(), {.items = {0, 2}}).claims.at(0).retry;
  Record(store(), retry, {{0, 1, 2}, {2, 21, 3}}, 0);
  EXPECT_EQ(Record(store(), retry, {{0, 1, 2}, {0, kWholeItem, 2}, {2, kWholeItem, 0}}, 0), 1);
  EXPECT_THAT(Retried(*Read()), ElementsAre(Pair(0, 0)));
  EXPECT_EQ(Record(store(), retry, {{0, kWholeItem, 0}}, 0), 0);
  EXPECT_TRUE(absl::IsNotFound(store()->RecordRetry(kBatch, retry, {}, kRetry).status()));
  EXPECT_TRUE(store()->ReopenDeadLettered(kBatch, {0, 2}).ok());
}

TEST_P(ReportConformanceTest, FreesTheDeadItemsOfABatchThatIsForgotten) {
  CompleteWithDead();
  RetryItem2(store());
  ASSERT_TRUE(store()->RegisterBatch(Shop(kRetry)).ok());
  Forget(store(), kRetry);
  EXPECT_THAT(Retried(*Read()), IsEmpty());
  EXPECT_EQ(Claim(store(), {}).claims.at(0).transactions, 21);
  Forget(store(), kBatch);
  EXPECT_THAT(Retried(*Read()), IsEmpty());
}

}  // namespace muster::report::conformance
