// SPDX-License-Identifier: Apache-2.0

// The load of gateway_load without HTTP: the engine of the gateway in this process, opened as the
// gateway opens it.
//
//   engine_load DIRECTORY [--messages N] [--threads N]
//
// Each thread puts one message of 1 KiB at a time, then gets 32 at a time and deletes them one by
// one. Prints a line of JSON for the puts, and one for the takes. DIRECTORY is made if it is not
// there, and stays.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "muster/queue/queue_store.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"

namespace muster::gateway_bench {
namespace {

constexpr int kBodyBytes = 1024;
constexpr int kGet = 32;
constexpr absl::Duration kVisibility = absl::Minutes(10);

struct Arguments {
  std::string directory;
  int64_t messages = 100'000;
  int threads = 64;
};

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "engine_load: " << status << std::endl;
  std::_Exit(1);
}

class Load {
 public:
  Load(queue::QueueStore* store, const Arguments& arguments)
      : store_(store), arguments_(arguments) {
    std::mt19937_64 noise(1);  // NOLINT(cert-msc51-cpp): the same bodies in each run
    for (std::string& body : bodies_) {
      body.resize(kBodyBytes);
      for (char& c : body) c = static_cast<char>(' ' + noise() % 95);
    }
    Check(store_->CreateQueue(kQueue, {}));
  }

  void Put() {
    Run("put", 1, [this](int64_t number) {
      queue::NewMessage message;
      message.body = bodies_[static_cast<size_t>(number) % bodies_.size()];
      Check(store_->Put(kQueue, {&message, 1}).status());
    });
  }

  void Take() {
    Run("take", kGet, [this](int64_t) {
      // A get beside others may find fewer than there are.
      for (int left = kGet; left > 0;) {
        auto received = store_->Receive(kQueue, {left, kVisibility});
        Check(received.status());
        for (const queue::Message& message : *received) {
          const auto deleted = store_->Delete(kQueue, {&message.receipt, 1});
          Check(deleted.status());
          Check(deleted->front());
        }
        left -= static_cast<int>(received->size());
      }
    });
  }

 private:
  inline static const queue::QueueId kQueue{"load", "load-0"};

  // Runs `step` on all threads until it has seen so many messages; it is told which is the first of
  // its share.
  void Run(const char* verb, int share, const std::function<void(int64_t)>& step) {
    std::atomic<int64_t> next{0};
    const auto began = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < arguments_.threads; ++i) {
      threads.emplace_back([&] {
        for (int64_t number; (number = next.fetch_add(share)) < arguments_.messages;) step(number);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const auto messages = static_cast<double>(arguments_.messages);
    std::cout
        << absl::StrFormat(
               "{\"verb\": \"%s\", \"messages\": %d, \"seconds\": %.3f, \"per_second\": %.0f}",
               verb, arguments_.messages, seconds, messages / seconds)
        << std::endl;
  }

  queue::QueueStore* const store_;
  const Arguments arguments_;
  std::vector<std::string> bodies_{64};
};

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("The load of gateway_bench without HTTP.");
  app.add_option("directory", arguments.directory)->required();
  app.add_option("--messages", arguments.messages)->check(CLI::PositiveNumber);
  app.add_option("--threads", arguments.threads)->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  arguments.messages -= arguments.messages % kGet;
  // As muster/backend opens it for the gateway.
  const queue::rocksdb::Options options{.collect_interval = absl::Minutes(1)};
  auto store = queue::rocksdb::RocksDbQueueStore::Open(arguments.directory, options);
  Check(store.status());
  Load load(store->get(), arguments);
  load.Put();
  load.Take();
  return 0;
}

}  // namespace
}  // namespace muster::gateway_bench

int main(int argc, char** argv) { return muster::gateway_bench::Main(argc, argv); }
