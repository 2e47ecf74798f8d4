// SPDX-License-Identifier: Apache-2.0

// The stock `muster-processor` with two handlers for mesh_bench.
//
//   noop        counts each transaction and adds up nothing
//   stopwatch   reads of each line when it was sent (nanoseconds of the monotonic clock), and
//               appends how long ago that is to the file that MUSTER_BENCH_LAPSES names
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "examples/retail/handler.h"
#include "muster/base/status.h"
#include "muster/handler/handler.h"
#include "services/processor/program.h"

namespace {

using muster::handler::Column;
using muster::handler::Handler;
using muster::handler::JobSchema;
using muster::handler::Outcome;
using muster::handler::Results;
using muster::handler::Transaction;
using muster::handler::WorkItem;

// The same in all processes of a machine.
int64_t Now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

class Noop final : public Handler {
 public:
  Outcome Process(const WorkItem& item, Results& results) override {
    for (const Transaction& line : item.transactions()) results.Count(line, {});
    return Outcome::Ok();
  }
};

class Stopwatch final : public Handler {
 public:
  Stopwatch(Column sent, const char* lapses) : sent_(sent), lapses_(lapses) {}

  Outcome Process(const WorkItem& item, Results& results) override {
    const int64_t now = Now();
    for (const Transaction& line : item.transactions()) {
      int64_t sent = 0;
      if (!absl::SimpleAtoi(line[sent_], &sent)) return Outcome::Dead("not a time");
      Append(absl::StrCat(now - sent, "\n"));
      results.Count(line, {});
    }
    return Outcome::Ok();
  }

 private:
  // Appends with one write, so that lines of several workers do not mix.
  void Append(const std::string& line) const {
    const int fd = open(lapses_, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0) return;
    const ssize_t written = write(fd, line.data(), line.size());
    static_cast<void>(written);  // the reader counts the lines
    close(fd);
  }

  const Column sent_;
  const char* const lapses_;
};

absl::StatusOr<std::unique_ptr<Handler>> MakeStopwatch(const JobSchema& schema) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread changes the environment
  const char* const lapses = std::getenv("MUSTER_BENCH_LAPSES");
  if (lapses == nullptr) return absl::FailedPreconditionError("MUSTER_BENCH_LAPSES is not set");
  MUSTER_ASSIGN_OR_RETURN(const Column sent, schema.FindColumn("line"));
  return std::make_unique<Stopwatch>(sent, lapses);
}

}  // namespace

int main(int argc, char** argv) {
  muster::handler::HandlerRegistry handlers;
  retail::RegisterRetail(handlers);
  handlers.Register({"noop", "1", [](const JobSchema&) { return std::make_unique<Noop>(); }});
  handlers.Register({"stopwatch", "1", MakeStopwatch});
  return muster::processor::Main(argc, argv, handlers);
}
