// SPDX-License-Identifier: Apache-2.0

// The embedded engine beside raw RocksDB and beside beanstalkd, over the same work in the same run:
// all keep 1 KiB messages, and all sync to disk before they answer.
//
//   queue_bench [--messages N] [--depth N] [--queues N] [--passed N] [--beanstalkd N] DIRECTORY
//
// The engine is opened with Options{.holders_in_process = true}, as `muster run` opens it: a
// receive writes nothing. The raw side is what a program would do that wants no queue at all
// (raw_store.h).
// The program talks to beanstalkd over loopback; beanstalkd syncs each message (beanstalkd.h).
//
// The sides take turns of some 30 ms (rounds.h), and hold as many messages as each other. Making
// the bodies is off the clock. Each step prints one line of JSON:
//   {"step":"put_32_at_depth_1000","messages_per_second":…,"raw_per_second":…,"ratio":…}
// DIRECTORY is made, filled and removed; at a depth of 1,000,000 it takes some 5 GB.
#include <filesystem>

#include "bench/queue_bench/arguments.h"
#include "bench/queue_bench/steps.h"

int main(int argc, char** argv) {
  using muster::queue_bench::Arguments;
  using muster::queue_bench::Steps;

  const Arguments arguments = muster::queue_bench::ParseArguments(argc, argv);
  std::filesystem::create_directories(arguments.directory);
  {
    Steps steps(arguments);
    steps.AtStandingDepth();
    steps.SinglePuts();
    steps.BesideBeanstalkd();
    steps.AfterManyPassed();
    steps.AtGreatDepth();
    steps.OverManyQueues();
    steps.Flatness();
  }
  std::filesystem::remove_all(arguments.directory);
  return 0;
}
