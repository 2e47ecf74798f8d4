// The embedded engine beside raw RocksDB, over the same work in the same run: both write 1 KiB
// messages, and both fsync before they answer.
//
//   queue_bench [--messages N] [--depth N] [--queues N] DIRECTORY
//
// The raw side is what a program would do that wants no queue at all: a sequence number as the key,
// the body as the value, a synced write for each batch. Each step prints one line of JSON:
//   {"step":"put_32","messages_per_second":…,"raw_per_second":…,"ratio":…}
// DIRECTORY is made, filled and removed; at a depth of 1,000,000 it takes some 5 GB.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/queue_rocksdb/rocksdb_queue_store.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/write_batch.h"

namespace {

using muster::queue::Message;
using muster::queue::NewMessage;
using muster::queue::QueueId;
using muster::queue::Receipt;
using muster::queue_rocksdb::RocksDbQueueStore;

constexpr int kBatch = 32;
constexpr int kWriters = 16;
constexpr size_t kBodyBytes = 1024;

struct Arguments {
  int64_t messages = 200'000;  // that each step moves
  int64_t depth = 1'000'000;
  int queues = 10'000;
  std::string directory;
};

[[noreturn]] void Die(absl::string_view what) {
  std::fprintf(stderr, "queue_bench: %.*s\n", static_cast<int>(what.size()), what.data());
  std::_Exit(1);
}

void Check(const absl::Status& status) {
  if (!status.ok()) Die(status.ToString());
}

void Check(const rocksdb::Status& status) {
  if (!status.ok()) Die(status.ToString());
}

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Noise, so that no compression flatters either side.
std::string Body(uint64_t seed) {
  std::string body;
  body.reserve(kBodyBytes);
  while (body.size() < kBodyBytes) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    body.append(reinterpret_cast<const char*>(&seed), sizeof(seed));
  }
  return body;
}

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

// The store of messages that has no queue in it.
class RawStore {
 public:
  explicit RawStore(const std::string& directory) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    rocksdb::DB* opened = nullptr;
    Check(rocksdb::DB::Open(options, directory, &opened));
    db_.reset(opened);
    synced_.sync = true;
  }

  void Put(int count) {
    rocksdb::WriteBatch batch;
    const uint64_t first = next_.fetch_add(static_cast<uint64_t>(count));
    for (int i = 0; i < count; ++i) {
      const uint64_t key = first + static_cast<uint64_t>(i);
      Check(batch.Put(Key(key), Body(key)));
    }
    Check(db_->Write(synced_, &batch));
  }

  // Reads and deletes the next `count` in order.
  void Take(int count) {
    rocksdb::WriteBatch batch;
    for (int i = 0; i < count; ++i) {
      const std::string key = Key(taken_++);
      std::string body;
      Check(db_->Get(rocksdb::ReadOptions(), key, &body));
      Check(batch.Delete(key));
    }
    Check(db_->Write(synced_, &batch));
  }

 private:
  static std::string Key(uint64_t number) { return absl::StrFormat("%016x", number); }

  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteOptions synced_;
  std::atomic<uint64_t> next_{0};
  uint64_t taken_ = 0;
};

class Engine {
 public:
  explicit Engine(std::string directory) : directory_(std::move(directory)) { Open(); }

  void Open() {
    store_.reset();
    auto opened = RocksDbQueueStore::Open(directory_, {});
    Check(opened.status());
    store_ = *std::move(opened);
  }

  void Create(const QueueId& queue) { Check(store_->CreateQueue(queue, {})); }

  void Put(const QueueId& queue, int count) {
    std::vector<NewMessage> messages(static_cast<size_t>(count));
    for (NewMessage& message : messages) message.body = Body(seed_.fetch_add(1));
    Check(store_->Put(queue, messages).status());
  }

  // Receives up to `count` and deletes them; answers how many.
  int Take(const QueueId& queue, int count) {
    const auto received = store_->Receive(queue, {count, absl::Minutes(10)});
    Check(received.status());
    std::vector<Receipt> receipts;
    receipts.reserve(received->size());
    for (const Message& message : *received) receipts.push_back(message.receipt);
    Check(store_->Delete(queue, receipts).status());
    return static_cast<int>(received->size());
  }

 private:
  const std::string directory_;
  std::unique_ptr<RocksDbQueueStore> store_;
  std::atomic<uint64_t> seed_{0};
};

void Print(absl::string_view step, double rate, double raw) {
  absl::PrintF(
      "{\"step\":\"%s\",\"messages_per_second\":%.0f,\"raw_per_second\":%.0f,"
      "\"ratio\":%.2f}\n",
      step, rate, raw, raw > 0 ? rate / raw : 0);
  std::fflush(stdout);
}

void PrintValue(absl::string_view step, absl::string_view unit, double value) {
  absl::PrintF("{\"step\":\"%s\",\"%s\":%.3f}\n", step, unit, value);
  std::fflush(stdout);
}

// How often `work`, which moves `per_call` messages, runs for `messages`, on `threads` threads.
double Rate(int64_t messages, int per_call, int threads, const std::function<void()>& work) {
  const int64_t calls = messages / per_call / threads;
  const double seconds = SecondsOf([&] {
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&] {
        for (int64_t call = 0; call < calls; ++call) work();
      });
    }
    for (std::thread& thread : running) thread.join();
  });
  return static_cast<double>(calls * threads * per_call) / seconds;
}

void PutAndTake(absl::string_view at, Engine& engine, RawStore& raw, int64_t messages) {
  const QueueId queue{"bench", "main"};
  const double put = Rate(messages, kBatch, 1, [&] { engine.Put(queue, kBatch); });
  const double raw_put = Rate(messages, kBatch, 1, [&] { raw.Put(kBatch); });
  Print(absl::StrCat("put_32_", at), put, raw_put);
  const double take = Rate(messages, kBatch, 1, [&] { engine.Take(queue, kBatch); });
  const double raw_take = Rate(messages, kBatch, 1, [&] { raw.Take(kBatch); });
  Print(absl::StrCat("receive_32_delete_", at), take, raw_take);
}

void SinglePuts(Engine& engine, RawStore& raw, int64_t messages) {
  const QueueId queue{"bench", "single"};
  engine.Create(queue);
  const double rate = Rate(messages, 1, kWriters, [&] { engine.Put(queue, 1); });
  const double raw_rate = Rate(messages, 1, kWriters, [&] { raw.Put(1); });
  Print("put_1_from_16_threads", rate, raw_rate);
  while (engine.Take(queue, kBatch) > 0) {
  }
}

void Fill(Engine& engine, const QueueId& queue, int64_t messages) {
  constexpr int kFillBatch = 1024;
  for (int64_t put = 0; put < messages; put += kFillBatch) engine.Put(queue, kFillBatch);
}

void AtDepth(Engine& engine, RawStore& raw, const Arguments& arguments) {
  const QueueId queue{"bench", "main"};
  const int64_t before = ResidentBytes();
  Fill(engine, queue, arguments.depth);
  PrintValue("memory_at_depth", "bytes_per_ready_message",
             static_cast<double>(ResidentBytes() - before) / static_cast<double>(arguments.depth));
  PutAndTake(absl::StrCat("at_depth_", arguments.depth), engine, raw, arguments.messages);
  PrintValue("reopen_at_depth", "seconds", SecondsOf([&] { engine.Open(); }));
}

void ManyQueues(Engine& engine, RawStore& raw, const Arguments& arguments) {
  std::vector<QueueId> queues;
  for (int i = 0; i < arguments.queues; ++i) {
    queues.push_back({"bench", absl::StrCat("queue-", i)});
    engine.Create(queues.back());
  }
  size_t next = 0;
  const auto queue = [&]() -> const QueueId& { return queues[next++ % queues.size()]; };
  const double put = Rate(arguments.messages, kBatch, 1, [&] { engine.Put(queue(), kBatch); });
  const double raw_put = Rate(arguments.messages, kBatch, 1, [&] { raw.Put(kBatch); });
  Print(absl::StrCat("put_32_over_", arguments.queues, "_queues"), put, raw_put);
  next = 0;
  const double take = Rate(arguments.messages, kBatch, 1, [&] { engine.Take(queue(), kBatch); });
  const double raw_take = Rate(arguments.messages, kBatch, 1, [&] { raw.Take(kBatch); });
  Print(absl::StrCat("receive_32_delete_over_", arguments.queues, "_queues"), take, raw_take);
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view name = argv[i];
    const auto number = [&](auto* value) {
      if (++i == argc || !absl::SimpleAtoi(argv[i], value) || *value < kBatch) {
        Die(absl::StrCat(name, " needs a number of at least ", kBatch));
      }
    };
    if (name == "--messages") {
      number(&arguments.messages);
    } else if (name == "--depth") {
      number(&arguments.depth);
    } else if (name == "--queues") {
      number(&arguments.queues);
    } else {
      arguments.directory = std::string(name);
    }
  }
  if (arguments.directory.empty()) {
    Die("usage: queue_bench [--messages N] [--depth N] [--queues N] DIRECTORY");
  }
  if (std::filesystem::exists(arguments.directory)) {
    Die(absl::StrCat(arguments.directory, " is there already; it would be removed"));
  }
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  std::filesystem::create_directories(arguments.directory);
  {
    Engine engine(arguments.directory + "/engine");
    RawStore raw(arguments.directory + "/raw");
    engine.Create({"bench", "main"});
    Fill(engine, {"bench", "main"}, 1000);
    PutAndTake("at_depth_1000", engine, raw, arguments.messages);
    SinglePuts(engine, raw, arguments.messages / 4);
    AtDepth(engine, raw, arguments);
    ManyQueues(engine, raw, arguments);
  }
  std::filesystem::remove_all(arguments.directory);
  return 0;
}
