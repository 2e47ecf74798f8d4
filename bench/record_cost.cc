// SPDX-License-Identifier: Apache-2.0

// record_cost: what it costs to record into a metric, while other threads record into the same one.
//
//   record_cost [--threads N] [--records N] [--rounds N]
//
// Prints a line of JSON: nanoseconds of a thread for each record, the best of some rounds.
// `atomic_ns` is the yardstick: an addition to one atomic integer that all threads share.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "muster/telemetry/catalogue.h"
#include "muster/telemetry/registry.h"

namespace muster {
namespace {

struct Arguments {
  int threads = 1;
  int records = 1'000'000;
  int rounds = 5;
};

bool Parse(const std::vector<std::string>& words, Arguments* arguments) {
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    int* const number = words[i] == "--threads"   ? &arguments->threads
                        : words[i] == "--records" ? &arguments->records
                        : words[i] == "--rounds"  ? &arguments->rounds
                                                  : nullptr;
    if (number == nullptr || !absl::SimpleAtoi(words[i + 1], number) || *number < 1) return false;
  }
  return words.size() % 2 == 0;
}

// Nanoseconds of a thread for each call of `record`, which gets numbers that grow.
double BestOf(const Arguments& arguments, const std::function<void(int begin, int end)>& record) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < arguments.rounds; ++round) {
    std::atomic<int> waiting = arguments.threads;
    std::vector<double> took(static_cast<size_t>(arguments.threads));
    std::vector<std::thread> threads;
    for (double& own : took) {
      threads.emplace_back([&] {
        for (--waiting; waiting > 0;) std::this_thread::yield();  // so that all record at once
        const absl::Time began = absl::Now();
        record(0, arguments.records);
        own = absl::ToDoubleNanoseconds(absl::Now() - began) / arguments.records;
      });
    }
    for (std::thread& thread : threads) thread.join();
    best = std::min(best, *std::max_element(took.begin(), took.end()));
  }
  return best;
}

void Run(const Arguments& arguments) {
  telemetry::Registry registry;
  const telemetry::Histogram histogram =
      telemetry::Histograms<1>(&registry, telemetry::kItemLatency).With({"retail-in"});
  const telemetry::Counters<2> items(&registry, telemetry::kItems);
  const telemetry::Counter counter = items.With({"retail-in", "aggregated"});
  std::atomic<uint64_t> yardstick = 0;
  const double atomic_ns = BestOf(arguments, [&](int begin, int end) {
    for (int i = begin; i < end; ++i) yardstick.fetch_add(1, std::memory_order_relaxed);
  });
  const double counter_ns = BestOf(arguments, [&](int begin, int end) {
    for (int i = begin; i < end; ++i) counter.Add();
  });
  const double histogram_ns = BestOf(arguments, [&](int begin, int end) {
    for (int i = begin; i < end; ++i) histogram.Observe((i & 1023) * 0.001);
  });
  const double exemplar_ns = BestOf(arguments, [&](int begin, int end) {
    for (int i = begin; i < end; ++i) histogram.Observe((i & 1023) * 0.001, {1, 2, 3});
  });
  const double with_ns = BestOf(arguments, [&](int begin, int end) {
    for (int i = begin; i < end; ++i) items.With({"retail-in", "aggregated"}).Add();
  });
  std::cout << absl::StreamFormat(
      "{\"threads\":%d,\"atomic_ns\":%.1f,\"counter_ns\":%.1f,\"histogram_ns\":%.1f,"
      "\"histogram_with_exemplar_ns\":%.1f,\"counter_by_labels_ns\":%.1f}\n",
      arguments.threads, atomic_ns, counter_ns, histogram_ns, exemplar_ns, with_ns);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::Arguments arguments;
  if (!muster::Parse({argv + 1, argv + argc}, &arguments)) {
    std::cerr << "usage: record_cost [--threads N] [--records N] [--rounds N]\n";
    return 2;
  }
  muster::Run(arguments);
  return 0;
}
