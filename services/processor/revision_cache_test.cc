// SPDX-License-Identifier: Apache-2.0
#include "services/processor/revision_cache.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/os/temp_dir.h"
#include "services/processor/processor.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::processor {
namespace {

class IdleHandler final : public handler::Handler {
 public:
  handler::Outcome Process(const handler::WorkItem&, handler::Results&) override {
    return handler::Outcome::Ok();
  }
};

class RevisionCacheTest : public ::testing::Test {
 protected:
  RevisionCacheTest() {
    handlers_.Register(
        {"idle", "7", [](const handler::JobSchema&) { return std::make_unique<IdleHandler>(); }});
  }

  // Each has a revision of its own.
  job::JobEntry Apply(int transactions, const std::string& handler = "idle") {
    return jobs_
        .Apply(absl::StrCat("name: apples\ninput: {format: lines}\nitem: {transactions: ",
                            transactions, "}\nhandler: {linked: ", handler,
                            "}\ngroups:\n  - {name: all, keys: [k], measures: {n: int}}\n"),
               std::nullopt)
        ->entry;
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  const std::unique_ptr<sync::OptimisticSyncStore> sync_ =
      backend::OpenSyncStore(backend::DataDirUrls(dir_.path()).sync).value();
  job::JobRegistry jobs_{sync_.get(), &clock_};
  handler::HandlerRegistry handlers_;
  RevisionCache book_{&jobs_, &handlers_, nullptr, {.instance = "worker-1"}, &clock_};
};

TEST_F(RevisionCacheTest, FindsWhatAnEarlierDefinitionNeeds) {
  const std::string revision = Apply(5).revision;
  Apply(6);
  const auto found = book_.Find(revision);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->job.item.transactions, 5);
  EXPECT_EQ((*found)->setup.job, &(*found)->job);
  EXPECT_EQ((*found)->setup.handler_version, "7");
  EXPECT_EQ((*found)->setup.instance, "worker-1");
  EXPECT_TRUE((*found)->handlers((*found)->setup.schema).ok());
  EXPECT_EQ(*book_.Find(revision), *found);
}

TEST_F(RevisionCacheTest, FindsARevisionOfADeletedJob) {
  const std::string revision = Apply(5).revision;
  ASSERT_TRUE(jobs_.Delete("apples").ok());
  EXPECT_TRUE(book_.Find(revision).ok());
}

TEST_F(RevisionCacheTest, LooksAgainAfterAWhileForWhatItDidNotFind) {
  const std::string revision = Apply(5, "mine").revision;
  EXPECT_TRUE(absl::IsNotFound(book_.Find(revision).status()));
  handlers_.Register(
      {"mine", "1", [](const handler::JobSchema&) { return std::make_unique<IdleHandler>(); }});
  EXPECT_TRUE(absl::IsNotFound(book_.Find(revision).status()));
  clock_.Advance(kMissingRevisionFor);
  EXPECT_TRUE(book_.Find(revision).ok());
}

TEST_F(RevisionCacheTest, KeepsNoMoreThanItMay) {
  const std::string first = Apply(1).revision;
  const auto kept = book_.Find(first);
  ASSERT_TRUE(kept.ok());
  for (int i = 2; i < static_cast<int>(kMaxRevisions) + 2; ++i) {
    clock_.Advance(absl::Seconds(1));
    ASSERT_TRUE(book_.Find(Apply(i).revision).ok());
  }
  const auto again = book_.Find(first);
  ASSERT_TRUE(again.ok());
  EXPECT_NE(*again, *kept);
  EXPECT_EQ((*again)->job.item.transactions, 1);
}

}  // namespace
}  // namespace muster::processor
