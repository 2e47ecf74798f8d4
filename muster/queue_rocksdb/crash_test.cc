// kill -9 at random instants: what was acknowledged is there, what was deleted stays gone.
//
// The victim is this program again, running only the test CrashVictim.Works: a process that has
// started threads (RocksDB's) must not go on after a mere fork.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/base/fake_clock.h"
#include "muster/base/temp_dir.h"
#include "muster/queue_rocksdb/rocksdb_queue_store.h"

namespace muster::queue_rocksdb {
namespace {

constexpr int kReportFd = 3;
constexpr char kDirVariable[] = "MUSTER_CRASH_DIR";
constexpr char kFirstVariable[] = "MUSTER_CRASH_FIRST";
const queue::QueueId kQueue{"acme", "work"};

// One short line is one atomic write into the pipe.
void Report(char what, const std::string& body) {
  const std::string line = absl::StrCat(std::string(1, what), body, "\n");
  if (write(kReportFd, line.data(), line.size()) < 0) _exit(1);
}

void PutForEver(RocksDbQueueStore* store, int64_t next) {
  while (true) {
    std::vector<queue::NewMessage> messages(4);
    for (queue::NewMessage& message : messages) message.body = absl::StrCat(next++);
    const std::vector<queue::NewMessage> put = messages;
    if (!store->Put(kQueue, messages).ok()) _exit(1);
    for (const queue::NewMessage& message : put) Report('P', message.body);
  }
}

void DeleteForEver(RocksDbQueueStore* store) {
  while (true) {
    const auto messages = store->Receive(kQueue, {3, absl::Seconds(30)});
    if (!messages.ok()) _exit(1);
    std::vector<queue::Receipt> receipts;
    for (const queue::Message& message : *messages) {
      receipts.push_back(message.receipt);
      Report('d', message.body);
    }
    const auto deleted = store->Delete(kQueue, receipts);
    for (size_t i = 0; i < receipts.size(); ++i) {
      if (!deleted.ok() || !(*deleted)[i].ok()) _exit(1);
      Report('D', (*messages)[i].body);
    }
  }
}

TEST(CrashVictim, Works) {
  const char* dir = getenv(kDirVariable);
  if (dir == nullptr) GTEST_SKIP() << "runs only as the victim of CrashTest";
  auto store = RocksDbQueueStore::Open(dir, Options());
  int64_t first = 0;
  if (!store.ok() || !absl::SimpleAtoi(getenv(kFirstVariable), &first)) _exit(1);
  if (!(*store)->CreateQueue(kQueue, {}).ok()) _exit(1);
  std::thread putter(PutForEver, store->get(), first);
  DeleteForEver(store->get());
  putter.join();
}

// What the victims have said so far.
struct Story {
  std::set<std::string> put, deleting, deleted;

  void Tell(const std::string& line) {
    const std::string body = line.substr(1);
    if (line[0] == 'P') put.insert(body);
    if (line[0] == 'd') deleting.insert(body);
    if (line[0] == 'D') deleted.insert(body);
  }
};

// Runs a victim on `dir`, kills it after `lines` lines, and adds all that it said to `story`.
void RunVictim(const std::string& dir, int64_t first, int lines, Story* story) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addclose(&actions, fds[0]);
  posix_spawn_file_actions_adddup2(&actions, fds[1], kReportFd);
  setenv(kDirVariable, dir.c_str(), 1);
  setenv(kFirstVariable, absl::StrCat(first).c_str(), 1);
  char self[] = "/proc/self/exe", filter[] = "--gtest_filter=CrashVictim.Works";
  char* argv[] = {self, filter, nullptr};
  pid_t victim = 0;
  ASSERT_EQ(posix_spawn(&victim, self, &actions, nullptr, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  unsetenv(kDirVariable);
  close(fds[1]);
  FILE* reports = fdopen(fds[0], "r");
  char line[64];
  for (int n = 0; fgets(line, sizeof(line), reports) != nullptr; ++n) {
    std::string text = line;
    text.pop_back();
    story->Tell(text);
    if (n == lines) kill(victim, SIGKILL);
  }
  fclose(reports);
  int status = 0;
  waitpid(victim, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the victim ended by itself: " << status;
}

std::set<std::string> AllBodies(const std::string& dir) {
  base::FakeClock clock;
  Options options;
  options.clock = &clock;
  auto store = RocksDbQueueStore::Open(dir, options);
  EXPECT_TRUE(store.ok()) << store.status();
  clock.Advance(absl::Minutes(10));  // past the victims' leases
  std::set<std::string> bodies;
  // Leases of a moment, so that the next round finds the messages again.
  while (store.ok()) {
    const auto messages = (*store)->Receive(kQueue, {32, absl::Milliseconds(1)});
    EXPECT_TRUE(messages.ok()) << messages.status();
    if (!messages.ok() || messages->empty()) break;
    for (const queue::Message& message : *messages) {
      EXPECT_TRUE(bodies.insert(message.body).second) << message.body << " is there twice";
    }
  }
  return bodies;
}

TEST(CrashTest, KeepsEveryAcknowledgementWhenKilled) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const base::TempDir dir;
  Story story;
  for (int round = 0; round < 5; ++round) {
    RunVictim(dir.path(), 1000000 * round, static_cast<int>(random() % 400), &story);
    const std::set<std::string> there = AllBodies(dir.path());
    for (const std::string& body : story.put) {
      if (story.deleting.contains(body)) continue;
      EXPECT_TRUE(there.contains(body)) << body << " was acknowledged, and is lost";
    }
    for (const std::string& body : story.deleted) {
      EXPECT_FALSE(there.contains(body)) << body << " was deleted, and is back";
    }
  }
}

}  // namespace
}  // namespace muster::queue_rocksdb
