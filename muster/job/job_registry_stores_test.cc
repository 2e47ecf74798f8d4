// SPDX-License-Identifier: Apache-2.0

// The contract of registries, over every store that keeps records: on this machine, and on each
// NATS server that NatsServer::Programs names.
#include <atomic>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/job/job_registry.h"
#include "muster/job/limits.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/os/temp_dir.h"
#include "muster/sync/optimistic_sync_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/test_seed.h"
#include "tests/fakes/job/job_text.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::job {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

// Holds the records; stores of several processes may be open on it at a time.
class Home {
 public:
  virtual ~Home() = default;

  virtual std::shared_ptr<sync::OptimisticSyncStore> Open() = 0;
  // How many records there are; nullopt: that cannot be told.
  virtual std::optional<size_t> CountRecords() { return std::nullopt; }
};

// One process owns the records, and all its registries share its store.
class DirectoryHome final : public Home {
 public:
  std::shared_ptr<sync::OptimisticSyncStore> Open() override {
    std::shared_ptr<sync::OptimisticSyncStore> store = open_.lock();
    if (store != nullptr) return store;
    store = backends_.OpenSyncStore(backend::DataDirUrls(root_ / "data").sync).value();
    open_ = store;
    return store;
  }

 private:
  const os::TempDir root_;
  backend::Backends backends_;
  std::weak_ptr<sync::OptimisticSyncStore> open_;
};

class ServerHome final : public Home {
 public:
  explicit ServerHome(const std::string& program) : server_(program) {}

  std::optional<size_t> CountRecords() override {
    const auto connection = nats::Connection::Open(server_.url(), {}).value();
    nats::JetStream jetstream(connection.get(), absl::Seconds(10));
    return jetstream.Subjects("KV_muster", ">")->size();
  }

  // Opens each store over its own connection.
  std::shared_ptr<sync::OptimisticSyncStore> Open() override {
    backends_.push_back(std::make_unique<backend::Backends>());
    return backends_.back()->OpenSyncStore(server_.url()).value();
  }

 private:
  const nats::testing::NatsServer server_;
  std::vector<std::unique_ptr<backend::Backends>> backends_;
};

using HomeMaker = std::function<std::unique_ptr<Home>()>;

class RegistriesTest : public ::testing::TestWithParam<HomeMaker> {
 protected:
  // The store and the registry of one of several processes.
  struct Process {
    explicit Process(RegistriesTest* test)
        : store(test->home_->Open()), registry(store.get(), &test->clock_) {}

    const std::shared_ptr<sync::OptimisticSyncStore> store;
    JobRegistry registry;
  };

  base::FakeClock clock_;
  const std::unique_ptr<Home> home_ = GetParam()();
};

TEST_P(RegistriesTest, KnowNoJobAtFirst) {
  Process process(this);
  EXPECT_THAT(process.registry.List().value(), ElementsAre());
  EXPECT_TRUE(absl::IsNotFound(process.registry.Get("a").status()));
  EXPECT_TRUE(absl::IsNotFound(process.registry.Delete("a")));
  for (const std::string& revision : {std::string(), std::string(32, '0'), std::string("a/b *")}) {
    EXPECT_TRUE(absl::IsNotFound(process.registry.FindRevision(revision).status()));
  }
}

TEST_P(RegistriesTest, AnswerWhatAnotherOneApplied) {
  Process one(this), other(this);
  for (const char* name : {"b", "a", "c"}) {
    ASSERT_TRUE(one.registry.Apply(JobText(name), "").ok());
  }
  const JobEntry a = other.registry.Get("a").value();
  EXPECT_EQ(a.definition, JobText("a"));
  EXPECT_EQ(a.updated, clock_.Now());
  const auto named = [](const char* name) { return Field(&JobEntry::name, name); };
  EXPECT_THAT(other.registry.List().value(), ElementsAre(named("a"), named("b"), named("c")));
  const auto summaries = other.registry.Summaries().value();
  ASSERT_EQ(summaries.size(), 3u);
  EXPECT_EQ(summaries.front().revision, a.revision);
}

TEST_P(RegistriesTest, KeepADefinitionAsLongAsOneMayBe) {
  std::string text = JobText("a");
  text.append(kMaxJobFileBytes - text.size(), '#');
  ASSERT_TRUE(Process(this).registry.Apply(text, std::nullopt).ok());
  EXPECT_EQ(Process(this).registry.Get("a")->definition, text);
}

TEST_P(RegistriesTest, FindRevisionsThatWereReplacedOrDeleted) {
  Process process(this);
  const std::string first = process.registry.Apply(JobText("a"), "")->entry.revision;
  const std::string second = process.registry.Apply(JobText("a", "price"), first)->entry.revision;
  ASSERT_TRUE(process.registry.Delete("a").ok());
  EXPECT_EQ(process.registry.FindRevision(first)->definition, JobText("a"));
  EXPECT_EQ(process.registry.FindRevision(second)->definition, JobText("a", "price"));
  EXPECT_EQ(process.registry.FindRevision(second)->name, "a");
  EXPECT_TRUE(absl::IsNotFound(process.registry.Get("a").status()));
}

TEST_P(RegistriesTest, FindTheLastDefinitionOfARevision) {
  Process process(this);
  const std::string revision = process.registry.Apply(JobText("a"), "")->entry.revision;
  const std::string later = JobText("a", "amount", "1d");
  ASSERT_EQ(process.registry.Apply(later, revision)->entry.revision, revision);
  EXPECT_EQ(process.registry.FindRevision(revision)->definition, later);
}

TEST_P(RegistriesTest, MakeADeletedJobAgain) {
  Process process(this);
  ASSERT_TRUE(process.registry.Apply(JobText("a"), "").ok());
  ASSERT_TRUE(process.registry.Delete("a").ok());
  const auto again = process.registry.Apply(JobText("a"), "");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->changed && again->revised);
}

TEST_P(RegistriesTest, LoseNoJobWhenSeveralApplyAtOnce) {
  constexpr int kProcesses = 3, kJobs = 5;
  std::vector<std::thread> threads;
  for (int p = 0; p < kProcesses; ++p) {
    threads.emplace_back([p, process = std::make_shared<Process>(this)] {
      for (int n = 0; n < kJobs;) {
        const auto applied = process->registry.Apply(JobText(absl::StrCat("j", p, "-", n)), "");
        ASSERT_TRUE(applied.ok() || absl::IsUnavailable(applied.status())) << applied.status();
        n += applied.ok() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Process(this).registry.List()->size(), size_t{kProcesses * kJobs});
}

TEST_P(RegistriesTest, LetOneOfSeveralWinThatExpectTheSameRevision) {
  const std::string first = Process(this).registry.Apply(JobText("a"), "")->entry.revision;
  std::atomic<int> won{0}, lost{0};
  std::vector<std::thread> threads;
  for (int p = 0; p < 4; ++p) {
    threads.emplace_back([&, p, process = std::make_shared<Process>(this)] {
      const auto applied = process->registry.Apply(JobText("a", absl::StrCat("c", p)), first);
      if (applied.ok()) ++won;
      if (absl::IsAborted(applied.status())) ++lost;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(won, 1);
  EXPECT_EQ(lost, 3);
}

// As the initiators do it, but without batches.
bool NothingIsNeeded(JobRegistry& registry, const std::string& name) {
  return registry.RemoveDefinitions(name, [](const std::string&) { return false; }).value();
}

// 500 jobs that were made and deleted had left 1,000 records, or more where they were replaced.
TEST_P(RegistriesTest, LeaveNoRecordsOfDeletedJobs) {
  Process one(this), other(this);
  ASSERT_TRUE(one.registry.Apply(JobText("stays"), std::nullopt).ok());
  for (const char* column : {"amount", "price"}) {
    ASSERT_TRUE(one.registry.Apply(JobText("first", column), std::nullopt).ok());
  }
  ASSERT_TRUE(one.registry.Delete("first").ok());
  ASSERT_TRUE(NothingIsNeeded(one.registry, "first"));
  const std::optional<size_t> before = home_->CountRecords();
  const int jobs = before.has_value() ? base::testing::CaseCount(500) : 20;
  for (int i = 0; i < jobs; ++i) {
    const std::string name = absl::StrCat("job-", i);
    const auto made = one.registry.Apply(JobText(name), std::nullopt);
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_TRUE(other.registry.Apply(JobText(name, "price"), std::nullopt).ok());
    ASSERT_TRUE(one.registry.Delete(name).ok());
    if (i % 100 == 0 && before.has_value()) EXPECT_EQ(home_->CountRecords(), *before + 5) << i;
    ASSERT_TRUE(NothingIsNeeded(other.registry, name)) << name;
    EXPECT_TRUE(absl::IsNotFound(one.registry.FindRevision(made->entry.revision).status()));
  }
  EXPECT_EQ(home_->CountRecords(), before);
  if (before.has_value()) std::cout << *before << " records before and after" << std::endl;
  EXPECT_EQ(one.registry.Get("stays")->definition, JobText("stays"));
}

TEST_P(RegistriesTest, LeaveOnlyWhatDefinesAJobNow) {
  Process process(this);
  ASSERT_TRUE(process.registry.Apply(JobText("a"), std::nullopt).ok());
  const std::optional<size_t> before = home_->CountRecords();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(process.registry.Apply(JobText("a", absl::StrCat("c", i)), std::nullopt).ok());
    ASSERT_TRUE(
        process.registry.Apply(JobText("a", absl::StrCat("c", i), "1d"), std::nullopt).ok());
  }
  if (before.has_value()) EXPECT_EQ(home_->CountRecords(), *before + 60 + 1);
  EXPECT_TRUE(NothingIsNeeded(process.registry, "a"));
  if (before.has_value()) EXPECT_EQ(home_->CountRecords(), *before + 1) << "jobs/replaced";
  const JobEntry now = process.registry.Get("a").value();
  EXPECT_EQ(now.definition, JobText("a", "c19", "1d"));
  EXPECT_EQ(process.registry.FindRevision(now.revision)->definition, now.definition);
}

// A removal may be held up at any point, while the job is applied and deleted again.
TEST_P(RegistriesTest, NeverLoseTheTextOfAJobThatIsAppliedWhileItIsRemoved) {
  Process one(this), other(this);
  std::atomic<bool> ends = false;
  std::thread removes([&] {
    while (!ends) {
      const auto removed =
          other.registry.RemoveDefinitions("a", [](const std::string&) { return false; });
      ASSERT_TRUE(removed.ok() || absl::IsUnavailable(removed.status())) << removed.status();
    }
  });
  for (int i = 0; i < 40; ++i) {
    const std::string text = JobText("a", i % 3 == 0 ? "price" : "amount");
    const auto applied = one.registry.Apply(text, std::nullopt);
    if (absl::IsUnavailable(applied.status())) continue;
    ASSERT_TRUE(applied.ok()) << applied.status();
    const auto there = one.registry.Get("a");
    ASSERT_TRUE(there.ok()) << i << ": " << there.status();
    EXPECT_EQ(there->definition, text);
    const auto found = one.registry.FindRevision(applied->entry.revision);
    ASSERT_TRUE(found.ok()) << i << ": " << found.status();
    const absl::Status deleted = i % 2 == 0 ? one.registry.Delete("a") : absl::OkStatus();
    ASSERT_TRUE(deleted.ok() || absl::IsUnavailable(deleted)) << deleted;
  }
  ends = true;
  removes.join();
}

std::vector<HomeMaker> Homes() {
  std::vector<HomeMaker> homes = {[] { return std::make_unique<DirectoryHome>(); }};
  for (const std::string& program : nats::testing::NatsServer::Programs()) {
    homes.emplace_back([program] { return std::make_unique<ServerHome>(program); });
  }
  return homes;
}

INSTANTIATE_TEST_SUITE_P(Stores, RegistriesTest, ::testing::ValuesIn(Homes()),
                         [](const auto& home) {
                           return home.index == 0 ? std::string("RocksDb")
                                                  : absl::StrCat("Server", home.index - 1);
                         });

}  // namespace
}  // namespace muster::job
