// SPDX-License-Identifier: Apache-2.0

// Many threads of many processes insert ids under a primary key, while
// processes are killed. It runs on both engines. JetStream has 8 processes with 8 threads each; an
// embedded store has one process, here with 64 threads, which is killed and opens the store again.
//
//   MUSTER_UNIQUE_IDS=10000000 unique_id_proof_test     so many ids instead of 200,000
//
// Prints a line of JSON for each engine, with the ids per second, and those of a generator that
// calls the store for each id. A thread writes each id into memory that it shares with the test
// before it draws the next one, so a kill hides no id that was given.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "muster/nats/connection.h"
#include "muster/os/temp_dir.h"
#include "muster/sync/jetstream/jetstream_sync_store.h"
#include "muster/sync/rocksdb/rocksdb_sync_store.h"
#include "muster/sync/unique_id_generator.h"
#include "tests/fakes/base/killable_process.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::sync {
namespace {

using base::testing::KillableProcess;
using base::testing::RegisteredProcess;
using base::testing::Send;

constexpr char kKey[] = "ids/order";
constexpr int kThreadsInAll = 64;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "unique_id_proof_test: %s\n", why.c_str());
  std::_Exit(1);
}

// Numbers in a file, which processes share. The file is sparse: it takes the room of what is
// written.
class SharedNumbers {
 public:
  using Number = std::atomic<int64_t>;
  static_assert(Number::is_always_lock_free && sizeof(Number) == sizeof(int64_t));

  SharedNumbers(const std::string& path, size_t count) : bytes_(count * sizeof(Number)) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes_)) != 0) Die(path);
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) Die(path);
    close(fd);
    numbers_ = static_cast<Number*>(memory);
  }
  ~SharedNumbers() { munmap(numbers_, bytes_); }
  SharedNumbers(const SharedNumbers&) = delete;
  SharedNumbers& operator=(const SharedNumbers&) = delete;

  Number& operator[](size_t i) { return numbers_[i]; }

 private:
  const size_t bytes_;
  Number* numbers_;
};

// What a drawing process is told, in one argument.
struct Task {
  std::string store;   // nats://… or a directory
  std::string folder;  // of shared numbers
  int64_t range_size = 0;
  int64_t ids = 0;  // of all processes together
  int generator = 0;
  int threads = 0;
  int64_t progress_every = 0;  // ids of this process between two lines to the test

  std::string ToString() const {
    return absl::StrCat(store, "|", folder, "|", range_size, "|", ids, "|", generator, "|", threads,
                        "|", progress_every);
  }
  static Task Parse(const std::string& text) {
    const std::vector<std::string> parts = absl::StrSplit(text, '|');
    Task task{parts.at(0), parts.at(1)};
    if (!absl::SimpleAtoi(parts.at(2), &task.range_size) ||
        !absl::SimpleAtoi(parts.at(3), &task.ids) ||
        !absl::SimpleAtoi(parts.at(4), &task.generator) ||
        !absl::SimpleAtoi(parts.at(5), &task.threads) ||
        !absl::SimpleAtoi(parts.at(6), &task.progress_every)) {
      Die(text);
    }
    return task;
  }
  std::string FileOf(int thread) const {
    return absl::StrCat(folder, "/ids-", generator, "-", thread);
  }
};

// A store of either engine.
struct OpenStore {
  explicit OpenStore(const std::string& where) {
    if (absl::StartsWith(where, "nats://")) {
      connection = nats::Connection::Open(where, {}).value();
      store = jetstream::JetStreamSyncStore::Open(connection.get()).value();
    } else {
      store = rocksdb::RocksDbSyncStore::Open(where).value();
    }
  }

  std::unique_ptr<nats::Connection> connection;
  std::unique_ptr<OptimisticSyncStore> store;
};

void Draw(const Task& task, int thread, UniqueIdGenerator* ids, std::atomic<int64_t>* own) {
  SharedNumbers total(task.folder + "/total", 1);
  SharedNumbers drawn(task.FileOf(thread), static_cast<size_t>(task.ids) + 1);
  for (size_t i = 0; total[0].fetch_add(1) < task.ids; ++i) {
    // A thread draws what it has counted, however often others are faster: were it to give the last
    // one back, no thread would draw it, for the others end when they see that all are counted.
    auto id = ids->NextId();
    while (absl::IsAborted(id.status())) id = ids->NextId();  // the others were faster
    if (!id.ok()) Die(id.status().ToString());
    drawn[i] = *id;
    if (own->fetch_add(1) % task.progress_every == task.progress_every - 1) Send("goes on");
  }
}

// Its threads share a generator, as those of a service do.
const RegisteredProcess drawer("drawer", [](const std::string& argument) {
  const Task task = Task::Parse(argument);
  OpenStore opened(task.store);
  UniqueIdGenerator ids(opened.store.get(), kKey, {.range_size = task.range_size});
  std::atomic<int64_t> own = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < task.threads; ++t) {
    threads.emplace_back([&, t] { Draw(task, t, &ids, &own); });
  }
  for (std::thread& thread : threads) thread.join();
});

// A table with a primary key. Inserting an id twice is an error of SQLite.
class IdTable {
 public:
  explicit IdTable(const std::string& path) {
    Run(sqlite3_open(path.c_str(), &db_));
    Run(sqlite3_exec(db_,
                     "PRAGMA journal_mode=off; PRAGMA synchronous=off; PRAGMA cache_size=-200000;"
                     "CREATE TABLE ids(id INTEGER NOT NULL PRIMARY KEY) WITHOUT ROWID; BEGIN",
                     nullptr, nullptr, nullptr));
    Run(sqlite3_prepare_v2(db_, "INSERT INTO ids VALUES(?)", -1, &insert_, nullptr));
  }
  ~IdTable() {
    sqlite3_finalize(insert_);
    sqlite3_close(db_);
  }
  IdTable(const IdTable&) = delete;
  IdTable& operator=(const IdTable&) = delete;

  // False: the primary key is violated.
  bool Insert(int64_t id) {
    Run(sqlite3_bind_int64(insert_, 1, id));
    const int stepped = sqlite3_step(insert_);
    sqlite3_reset(insert_);
    return stepped == SQLITE_DONE;
  }
  int64_t Count() {
    sqlite3_stmt* count = nullptr;
    Run(sqlite3_prepare_v2(db_, "SELECT count(*) FROM ids", -1, &count, nullptr));
    EXPECT_EQ(sqlite3_step(count), SQLITE_ROW);
    const int64_t rows = sqlite3_column_int64(count, 0);
    sqlite3_finalize(count);
    return rows;
  }

 private:
  void Run(int result) {
    if (result != SQLITE_OK) Die(sqlite3_errmsg(db_));
  }

  sqlite3* db_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
};

int64_t IdsToDraw() {
  int64_t ids = 200'000;
  const char* const wanted = std::getenv("MUSTER_UNIQUE_IDS");
  if (wanted != nullptr && (!absl::SimpleAtoi(wanted, &ids) || ids < 10'000)) {
    Die("MUSTER_UNIQUE_IDS is no number from 10,000 on");
  }
  return ids;
}

// Draws ids in processes, kills some of them, and checks what was drawn.
class Proof {
 public:
  Proof(std::string store, int processes, int64_t range_size, int64_t ids)
      : processes_(processes),
        task_{.store = std::move(store),
              .folder = folder_.path(),
              .range_size = range_size,
              .ids = ids,
              .threads = kThreadsInAll / processes} {}

  // Kills a process `kills` times after it has drawn some ids, and starts another in its place.
  void Run(int kills) {
    task_.progress_every = std::max<int64_t>(task_.ids / (processes_ * (kills + 2)), 1);
    const auto began = std::chrono::steady_clock::now();
    std::vector<std::unique_ptr<KillableProcess>> running;
    for (int i = 0; i < processes_; ++i) running.push_back(Start());
    for (int k = 0; k < kills; ++k) {
      auto& victim = running[static_cast<size_t>(k % processes_)];
      if (!victim->Receive().has_value()) break;  // all are drawn
      killed_ += victim->Kill();
      victim = Start();
    }
    for (auto& process : running) {
      while (process->Receive().has_value()) continue;
    }
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }

  // Each id came once, and each generator, however it ended, has lost a range at most.
  void Check() {
    IdTable table(folder_ / "ids.db");
    for (int g = 0; g < task_.generator; ++g) {
      for (int t = 0; t < task_.threads; ++t) Insert(g, t, &table);
    }
    const int64_t reserved = Reserved();
    EXPECT_EQ(table.Count(), drawn_);
    EXPECT_LE(drawn_, reserved);
    EXPECT_LE(reserved - drawn_, task_.generator * task_.range_size);
    // A thread that dies has counted an id that it has not drawn.
    EXPECT_GE(drawn_, task_.ids - int64_t{killed_} * task_.threads);
    lost_ = reserved - drawn_;
  }

  int64_t drawn() const { return drawn_; }
  int64_t lost() const { return lost_; }
  int killed() const { return killed_; }
  double ids_per_second() const { return static_cast<double>(drawn_) / seconds_; }

 private:
  std::unique_ptr<KillableProcess> Start() {
    const std::string argument = task_.ToString();
    ++task_.generator;
    return std::make_unique<KillableProcess>("drawer", argument);
  }
  void Insert(int generator, int thread, IdTable* table) {
    Task task = task_;
    task.generator = generator;
    SharedNumbers drawn(task.FileOf(thread), static_cast<size_t>(task.ids) + 1);
    for (size_t i = 0; drawn[i] != 0; ++i, ++drawn_) {
      if (!table->Insert(drawn[i])) FAIL() << "id " << drawn[i] << " came twice";
    }
  }
  // How many ids were reserved, used or not.
  int64_t Reserved() {
    OpenStore opened(task_.store);
    int64_t next = 0;
    EXPECT_TRUE(absl::SimpleAtoi(opened.store->Get(kKey)->data, &next));
    return next - 1;
  }

  const os::TempDir folder_;
  const int processes_;
  Task task_;  // of the next process
  int killed_ = 0;
  int64_t drawn_ = 0;
  int64_t lost_ = 0;
  double seconds_ = 0;
};

// `store` and `other_store` are empty.
void Prove(const std::string& engine, const std::string& store, const std::string& other_store,
           int processes) {
  constexpr int kKills = 8;
  const int64_t ids = IdsToDraw();
  Proof proof(store, processes, 1000, ids);
  proof.Run(kKills);
  proof.Check();
  EXPECT_GE(proof.killed(), 1) << "the others drew all before they were killed";
  Proof one_call_each(other_store, processes, 1, std::min<int64_t>(ids / 400, 20'000));
  one_call_each.Run(0);
  one_call_each.Check();
  std::printf(
      "{\"engine\":\"%s\",\"processes\":%d,\"threads\":%d,\"ids\":%lld,\"kills\":%d,"
      "\"ids_lost\":%lld,\"ids_per_s\":%.0f,\"one_call_each_ids_per_s\":%.0f}\n",
      engine.c_str(), processes, kThreadsInAll, static_cast<long long>(proof.drawn()),
      proof.killed(), static_cast<long long>(proof.lost()), proof.ids_per_second(),
      one_call_each.ids_per_second());
}

TEST(UniqueIdProofTest, SixtyFourThreadsOfAnEmbeddedStoreThatIsKilledNeverViolateAPrimaryKey) {
  const os::TempDir dir;
  Prove("rocksdb", dir / "one", dir / "two", 1);
}

class UniqueIdProofOnNatsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(UniqueIdProofOnNatsTest, EightProcessesThatAreKilledNeverViolateAPrimaryKey) {
  const nats::testing::NatsServer server(GetParam()), other(GetParam());
  Prove("jetstream", server.url(), other.url(), 8);
}

INSTANTIATE_TEST_SUITE_P(Servers, UniqueIdProofOnNatsTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

}  // namespace
}  // namespace muster::sync
