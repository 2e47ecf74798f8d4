// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/queue_watch.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/names.h"
#include "services/scaling-agent/limits.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/scaling-agent/agent_fixture.h"

namespace muster::scaling_agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(QueueNamesTest, TheExactNameIsMeantFirst) {
  const std::vector<std::string> names = {"in", "in-0"};
  EXPECT_EQ(NameOf("in-0", names), "in-0");
  EXPECT_EQ(NameOf("in-1", names), "in");
  EXPECT_EQ(NameOf("out-1", names), "");
}

TEST(QueueNamesTest, APartitionsNumberEndsItsName) {
  EXPECT_EQ(WithoutPartition("in-12"), "in");
  for (const char* name : {"in", "in-", "in-x", "in12", "12", ""}) {
    EXPECT_EQ(WithoutPartition(name), name);
  }
}

TEST(QueueNamesTest, OtherAccountsQueuesAreNone) {
  EXPECT_EQ(WithinAccount("acme/in-0", "acme"), "in-0");
  EXPECT_EQ(WithinAccount("acmeister/in-0", "acme"), "");
  EXPECT_EQ(WithinAccount("in-0", "acme"), "");
}

class QueueWatchTest : public ::testing::Test {
 protected:
  QueueWatchTest() {
    for (const char* name : {"in-0", "in-1", "other-0"}) queues_.Create(name);
  }
  QueueWatch Watch(std::vector<std::string> names) {
    return QueueWatch(kTestAccount, std::move(names), queues_.store(), &clock_);
  }

  base::FakeClock clock_;
  TestQueues queues_{&clock_};
};

TEST_F(QueueWatchTest, SumsUpThePartitionsOfAName) {
  queues_.Put("in-0", 3);
  clock_.Advance(absl::Seconds(5));
  queues_.Put("in-1", 4);
  queues_.Put("other-0", 100);
  QueueWatch watch = Watch({"in"});
  EXPECT_THAT(watch.readings(), IsEmpty());
  watch.Look();
  const auto readings = watch.readings();
  ASSERT_THAT(readings, SizeIs(1));
  EXPECT_EQ(readings[0].queue, "in");
  EXPECT_EQ(readings[0].at, clock_.Now());
  EXPECT_EQ(readings[0].ready, 7);
  EXPECT_EQ(readings[0].total_in, 7);
  EXPECT_EQ(readings[0].oldest_age, absl::Seconds(5));
  EXPECT_TRUE(watch.trouble().ok());
}

TEST_F(QueueWatchTest, FindsThePartitionsOfAJobWhoseNameNoQueueCanHave) {
  for (const int partition : {0, 11}) {
    const std::string queue = base::PartitionName("my_job-in", partition);
    queues_.Create(queue);
    queues_.Put(queue, 2);
  }
  queues_.Create(base::PartitionName("my_other_job-in", 0));
  QueueWatch watch = Watch({"my_job-in"});
  watch.Look();
  ASSERT_THAT(watch.readings(), SizeIs(1)) << watch.trouble();
  EXPECT_EQ(watch.readings()[0].ready, 4);
  EXPECT_EQ(NameOf(base::PartitionName("my_job-in", 11), {"in", "my_job-in"}), "my_job-in");
}

TEST_F(QueueWatchTest, AQueueThatNobodyHasMadeYetHasNoWork) {
  QueueWatch watch = Watch({"later", "in-0"});
  watch.Look();
  ASSERT_THAT(watch.readings(), SizeIs(2));
  EXPECT_EQ(watch.readings()[0].ready, 0);
  EXPECT_TRUE(watch.trouble().ok());
}

TEST_F(QueueWatchTest, ANameThatMeansNoQueueIsToldAfterAWhileUntilThereIsOne) {
  QueueWatch watch = Watch({"in", "later"});
  queues_.Create("stock-0");
  ASSERT_TRUE(queues_.store()->DeleteQueue({kTestAccount, "other-0"}).ok());
  const absl::Duration began = clock_.Monotonic();
  for (; clock_.Monotonic() - began < kUnknownNameGrace; clock_.Advance(kLookPeriod)) {
    watch.Look();
    ASSERT_TRUE(watch.unknown().ok()) << clock_.Monotonic() - began;
  }
  EXPECT_EQ(watch.unknown().message(),
            "the rules name 'later', and there is no such queue or job; there is 'in', "
            "'stock'");
  EXPECT_TRUE(watch.trouble().ok());
  EXPECT_THAT(watch.readings(), SizeIs(2)) << "a warning, and no more";
  queues_.Create("later-0");
  watch.OnTrigger("later-0");
  watch.Look();
  EXPECT_TRUE(watch.unknown().ok());
}

TEST_F(QueueWatchTest, ANameOfAJobThatHasNoQueuesYetIsKnown) {
  std::vector<std::string> jobs = {"my_job"};
  QueueWatch watch(kTestAccount, {"my_job-in", "my_jib-in"}, queues_.store(), &clock_,
                   [&] { return jobs; });
  watch.Look();
  clock_.Advance(kUnknownNameGrace);
  EXPECT_EQ(watch.unknown().message(),
            "the rules name 'my_jib-in', and there is no such queue or job; did you mean "
            "'my_job-in'?");
  jobs.push_back("my_jib");
  watch.Look();
  EXPECT_TRUE(watch.unknown().ok());
  jobs.clear();
  clock_.Advance(kListPeriod);
  watch.Look();
  EXPECT_TRUE(watch.unknown().ok()) << "it has just become unknown";
}

TEST_F(QueueWatchTest, WhatThereIsCannotBeToldWhileItCannotBeListed) {
  QueueWatch watch = Watch({"later"});
  for (const char* name : {"in-0", "in-1", "other-0"}) {
    EXPECT_TRUE(queues_.store()->DeleteQueue({kTestAccount, name}).ok());
  }
  watch.Look();
  clock_.Advance(kUnknownNameGrace);
  EXPECT_THAT(watch.unknown().ToString(), HasSubstr("; there is none at all"));
}

TEST_F(QueueWatchTest, FindsAQueueAsSoonAsATriggerNamesIt) {
  QueueWatch watch = Watch({"later"});
  watch.Look();
  queues_.Create("later-0");
  queues_.Put("later-0", 2);
  watch.Look();
  EXPECT_EQ(watch.readings()[0].ready, 0) << "it does not list queues at each look";
  watch.OnTrigger("later-0");
  watch.Look();
  EXPECT_EQ(watch.readings()[0].ready, 2);
}

TEST_F(QueueWatchTest, FindsANewPartitionAfterAWhileByItself) {
  QueueWatch watch = Watch({"in"});
  watch.Look();
  queues_.Create("in-2");
  queues_.Put("in-2", 2);
  clock_.Advance(kListPeriod);
  watch.Look();
  EXPECT_EQ(watch.readings()[0].ready, 2);
}

TEST_F(QueueWatchTest, FindsAPartitionThatComesAfterManyOthersOfLikeNames) {
  for (int i = 0; i < kQueuesPerPage + 100; ++i) queues_.Create(absl::StrCat("in-1-", i));
  queues_.Create("in-9");
  queues_.Put("in-9", 2);
  QueueWatch watch = Watch({"in"});
  watch.Look();
  ASSERT_THAT(watch.readings(), SizeIs(1)) << watch.trouble();
  EXPECT_EQ(watch.readings()[0].ready, 2);
}

// An agent that took the watched partitions for all would remove the replicas that work on the
// others.
TEST_F(QueueWatchTest, MorePartitionsThanItWatchesAreATroubleAndNoReading) {
  for (size_t i = 0; i < kMaxPartitions; ++i) queues_.Create(absl::StrCat("more-", i));
  QueueWatch watch = Watch({"more"});
  watch.Look();
  EXPECT_THAT(watch.readings(), SizeIs(1)) << watch.trouble();
  queues_.Create(absl::StrCat("more-", kMaxPartitions));
  clock_.Advance(kListPeriod);
  for (int i = 0; i < 3; ++i) {
    watch.Look();
    EXPECT_THAT(watch.readings(), IsEmpty());
    EXPECT_THAT(watch.trouble().ToString(), HasSubstr("'more' has more than 1024 partitions"));
    clock_.Advance(kLookPeriod);
  }
}

TEST_F(QueueWatchTest, ADeletedQueueIsNoTrouble) {
  queues_.Put("in-1", 1);
  QueueWatch watch = Watch({"in"});
  watch.Look();
  EXPECT_TRUE(queues_.store()->DeleteQueue({kTestAccount, "in-1"}).ok());
  watch.Look();
  EXPECT_EQ(watch.readings()[0].ready, 0);
  EXPECT_TRUE(watch.trouble().ok());
}

TEST_F(QueueWatchTest, AStoreThatHangsIsToldAndKeepsNobodyWaiting) {
  QueueWatch watch = Watch({"in"});
  watch.Look();
  queues_.store()->barrier()->Shut();
  std::thread looks([&] { watch.Look(); });
  queues_.store()->barrier()->AwaitSomebody();
  EXPECT_THAT(watch.readings(), SizeIs(1));
  EXPECT_TRUE(watch.trouble().ok());
  clock_.Advance(kReadingLifetime + absl::Seconds(1));
  EXPECT_THAT(watch.readings(), IsEmpty());
  EXPECT_THAT(watch.trouble().ToString(), HasSubstr("have not come for 4 s"));
  queues_.store()->barrier()->Open();
  looks.join();
  EXPECT_THAT(watch.readings(), SizeIs(1));
  EXPECT_TRUE(watch.trouble().ok());
}

TEST_F(QueueWatchTest, OldReadingsAreNone) {
  QueueWatch watch = Watch({"in"});
  watch.Look();
  queues_.store()->Fail(absl::UnavailableError("down"));
  clock_.Advance(kReadingLifetime);
  watch.Look();
  EXPECT_THAT(watch.readings(), SizeIs(1));
  EXPECT_THAT(watch.trouble().ToString(), HasSubstr("acme/in-0: down"));
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(watch.readings(), IsEmpty());
  queues_.store()->Fail(absl::OkStatus());
  watch.Look();
  EXPECT_THAT(watch.readings(), SizeIs(1));
  EXPECT_TRUE(watch.trouble().ok());
}

}  // namespace
}  // namespace muster::scaling_agent
