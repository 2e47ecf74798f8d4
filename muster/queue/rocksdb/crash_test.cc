// SPDX-License-Identifier: Apache-2.0

// kill -9 at random instants: acknowledged puts are there, acknowledged deletes stay deleted.
#include <unistd.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/killable_process.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::queue::rocksdb {
namespace {

const queue::QueueId kQueue{"acme", "work"};

void Report(char what, const std::string& body) {
  base::testing::Send(absl::StrCat(std::string(1, what), body));
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

// `argument` is the first body's number, a space, and the directory.
const base::testing::RegisteredProcess worker("worker", [](const std::string& argument) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(argument, absl::MaxSplits(' ', 1));
  auto store = RocksDbQueueStore::Open(parts.second, Options());
  int64_t first = 0;
  if (!store.ok() || !absl::SimpleAtoi(parts.first, &first)) _exit(1);
  if (!(*store)->CreateQueue(kQueue, {}).ok()) _exit(1);
  std::thread putter(PutForEver, store->get(), first);
  DeleteForEver(store->get());
  putter.join();
});

// The reports of all victims so far.
struct Story {
  std::set<std::string> put, deleting, deleted;

  void Tell(const std::string& line) {
    const std::string body = line.substr(1);
    if (line[0] == 'P') put.insert(body);
    if (line[0] == 'd') deleting.insert(body);
    if (line[0] == 'D') deleted.insert(body);
  }
};

// Runs a process on `dir`, kills it after `lines` lines, and adds all its reports to `story`.
void RunVictim(const std::string& dir, int64_t first, int lines, Story* story) {
  base::testing::KillableProcess process("worker", absl::StrCat(first, " ", dir));
  for (int n = 0; const auto line = process.Receive(); ++n) {
    story->Tell(*line);
    if (n < lines) continue;
    EXPECT_TRUE(process.Kill()) << "the process ended by itself";
  }
}

std::set<std::string> AllBodies(const std::string& dir) {
  base::FakeClock clock;
  Options options;
  options.clock = &clock;
  auto store = RocksDbQueueStore::Open(dir, options);
  EXPECT_TRUE(store.ok()) << store.status();
  clock.Advance(absl::Minutes(10));  // past the victims' leases
  std::set<std::string> bodies;
  // The leases are short, so that the next round finds the messages again.
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
  const uint32_t seed = base::testing::TestSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const os::TempDir dir;
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
}  // namespace muster::queue::rocksdb
