// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_bench/steps.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/queue_bench/beanstalkd.h"
#include "bench/queue_bench/beanstalkd_server.h"
#include "bench/queue_bench/rounds.h"

namespace muster::queue_bench {
namespace {

constexpr char kPut[] = "put_32";
constexpr char kTake[] = "receive_32_delete";
constexpr char kSinglePut[] = "put_1";

// The puts of a caller in a round: enough that the end of the round, when some callers have
// finished and others have not, weighs little. Beanstalkd needs fewer, because it handles one put
// after the other.
constexpr int kPutsPerCaller = 64;
constexpr int kPutsPerCallerBesideBeanstalkd = 16;

// Returns freed memory to the system first: otherwise a step that reuses freed memory would seem to
// need none.
int64_t ResidentBytes() {
  malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

std::vector<queue::QueueId> ManyQueues(int64_t count) {
  std::vector<queue::QueueId> queues;
  for (int64_t i = 0; i < count; ++i) queues.push_back({"bench", absl::StrCat("queue-", i)});
  return queues;
}

}  // namespace

Steps::Steps(const Arguments& arguments)
    : arguments_(arguments),
      engine_(arguments.directory + "/engine"),
      queue_(&engine_, {{"bench", "main"}}),
      raw_(arguments.directory + "/raw") {
  Fill(queue_, kDepth, kBulk, bodies_);
  Fill(raw_, kDepth, kBulk, bodies_);
}

void Steps::BatchesBesideRaw(EngineSide& side, const std::string& at) {
  const BatchRates rates = MeasureBatches(side, raw_, arguments_.messages, bodies_);
  report_.BesideRaw(kPut, at, rates.put);
  report_.BesideRaw(kTake, at, rates.take);
}

void Steps::AtStandingDepth() { BatchesBesideRaw(queue_, absl::StrCat("at_depth_", kDepth)); }

void Steps::SinglePuts() {
  report_.BesideRaw(
      kSinglePut, "from_16_threads",
      MeasureSinglePuts(queue_, raw_, arguments_.messages / 4, kPutsPerCaller, bodies_));
}

void Steps::BesideBeanstalkd() {
  const char step[] = "beside_beanstalkd";
  if (arguments_.beanstalkd == 0) return report_.Skipped(step, "--beanstalkd 0");
  const auto server = BeanstalkdServer::Start(arguments_.directory + "/beanstalkd");
  if (server == nullptr) return report_.Skipped(step, "beanstalkd is not installed");
  Beanstalkd beanstalkd(server->port());
  Fill(beanstalkd, kDepth, kBulk, bodies_);
  const BatchRates rates = MeasureBatches(queue_, beanstalkd, arguments_.beanstalkd, bodies_);
  report_.BesideBeanstalkd(kPut, rates.put);
  report_.BesideBeanstalkd(kTake, rates.take);
  report_.BesideBeanstalkd("put_1_from_16_threads",
                           MeasureSinglePuts(queue_, beanstalkd, arguments_.beanstalkd / 4,
                                             kPutsPerCallerBesideBeanstalkd, bodies_));
}

void Steps::AfterManyPassed() {
  if (arguments_.passed == 0) return;
  for (int64_t left = arguments_.passed; left > 0; left -= kBulk) {
    Fill(queue_, kBulk, kBulk, bodies_);
    Drain(queue_, kBulk, kBulk);
  }
  BatchesBesideRaw(queue_, absl::StrCat("after_", arguments_.passed, "_passed"));
}

void Steps::AtGreatDepth() {
  const int64_t added = arguments_.depth - kDepth;
  // RocksDB's buffers and caches are bounded, and full after the warm-up: the growth after it
  // belongs to the messages.
  const int64_t warming = added / 4;
  Fill(queue_, warming, kBulk, bodies_);
  const int64_t before = ResidentBytes();
  Fill(queue_, added - warming, kBulk, bodies_);
  report_.Value(
      "memory_at_depth", "bytes_per_ready_message",
      static_cast<double>(ResidentBytes() - before) / static_cast<double>(added - warming));
  Fill(raw_, added, kBulk, bodies_);
  BatchesBesideRaw(queue_, absl::StrCat("at_depth_", arguments_.depth));
  report_.Value("close_at_depth", "seconds", SecondsOf([&] { engine_.Close(); }));
  report_.Value("reopen_at_depth", "seconds", SecondsOf([&] { engine_.Open(); }));
  Drain(queue_, added, kBulk);
  Drain(raw_, added, kBulk);
}

void Steps::OverManyQueues() {
  EngineSide queues(&engine_, ManyQueues(arguments_.queues));
  Fill(queues, arguments_.queues * kBatch, kBatch, bodies_);
  Fill(raw_, arguments_.queues * kBatch, kBatch, bodies_);
  BatchesBesideRaw(queues, absl::StrCat("over_", arguments_.queues, "_queues"));
}

void Steps::Flatness() { report_.Flatness({kPut, kTake}); }

}  // namespace muster::queue_bench
