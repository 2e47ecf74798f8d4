// SPDX-License-Identifier: Apache-2.0

// A process of release_latency: threads that wait for a release, or the one that releases.
//
//   release_waiter wait URL THREADS      for release "bench"; again after each line that it reads
//   release_waiter release URL           after each line that it reads; and arms the next epoch
//
// A waiter prints "parked", and then "left NS" when the last of its threads has gone. The releaser
// prints "ready", and then "released NS", the time before its call, when the call has returned.
// Times are of CLOCK_MONOTONIC, which all processes of a machine share.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/base/log.h"
#include "muster/bus/nats/nats_buses.h"
#include "muster/nats/connection.h"
#include "muster/release/combined_release.h"
#include "muster/release/releases.h"
#include "muster/sync/jetstream/jetstream_sync_store.h"

namespace muster {
namespace {

constexpr char kName[] = "bench";

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "release_waiter: %s\n", why.c_str());
  std::_Exit(1);
}

template <typename T>
T OrDie(absl::StatusOr<T> result) {
  if (!result.ok()) Die(result.status().ToString());
  return *std::move(result);
}

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Say(const std::string& line) { std::cout << line << std::endl; }

bool AwaitLine() {
  std::string line;
  return static_cast<bool>(std::getline(std::cin, line));
}

struct Mesh {
  explicit Mesh(const std::string& url)
      : connection(OrDie(nats::Connection::Open(url, {.prompt = true}))),
        store(OrDie(sync::jetstream::JetStreamSyncStore::Open(connection.get()))),
        bus(connection.get()) {}

  const std::unique_ptr<nats::Connection> connection;
  const std::unique_ptr<sync::jetstream::JetStreamSyncStore> store;
  bus::nats::NatsTriggerBus bus;
};

void WaitOnce(Mesh* mesh, int threads) {
  const auto release = OrDie(
      release::CombinedRelease::Open(kName, mesh->store.get(), &mesh->bus, base::RealClock()));
  std::atomic<int64_t> last = 0;
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      OrDie(release->Wait({}));
      const int64_t left = Now();
      int64_t before = last;
      while (before < left && !last.compare_exchange_weak(before, left)) {
      }
    });
  }
  while (release->epoch() == 0) std::this_thread::yield();
  Say("parked");
  for (std::thread& worker : workers) worker.join();
  Say("left " + std::to_string(last));
}

void Wait(const std::string& url, int threads) {
  Mesh mesh(url);
  do {
    WaitOnce(&mesh, threads);
  } while (AwaitLine());
}

void Release(const std::string& url) {
  Mesh mesh(url);
  release::Releases releases(mesh.store.get(), &mesh.bus, "bench", base::RealClock());
  Say("ready");
  while (AwaitLine()) {
    const int64_t began = Now();
    OrDie(releases.Release(kName));
    Say("released " + std::to_string(began));
    if (!AwaitLine()) return;
    OrDie(releases.Arm(kName));
    Say("armed");
  }
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::base::SetMinLogLevel(muster::base::kWarning);
  const std::string verb = argc > 1 ? argv[1] : "";
  int threads = 0;
  if (verb == "wait" && argc == 4 && absl::SimpleAtoi(argv[3], &threads) && threads > 0) {
    muster::Wait(argv[2], threads);
  } else if (verb == "release" && argc == 3) {
    muster::Release(argv[2]);
  } else {
    muster::Die("usage: release_waiter wait URL THREADS | release_waiter release URL");
  }
  return 0;
}
