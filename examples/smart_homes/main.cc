// A security company watches 100,000 homes: their sensors feed a stream of 16 partitions, and
// processors that come and go count the readings, each exactly once. README.md has the commands.
//
//   smart_homes feed    --url nats://HOST:PORT [--readings N] [--homes N] [--seed N]
//   smart_homes process --url nats://HOST:PORT [--member NAME] [--readings N]
//   smart_homes check   --url nats://HOST:PORT [--readings N] [--homes N] [--seed N]
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "examples/smart_homes/readings.h"
#include "examples/smart_homes/totals_keeper.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/os/stop_signals.h"
#include "muster/stream/event_producer.h"
#include "muster/stream/processor/event_processor.h"

namespace muster::example {
namespace {

constexpr char kStream[] = "smart-homes";
constexpr char kGroup[] = "store";
constexpr int kPartitions = 16;
constexpr uint64_t kBatch = 1000;

struct Arguments {
  std::string command;
  std::string url = "nats://127.0.0.1:4222";
  std::string member;
  uint64_t readings = 1'000'000;
  uint64_t homes = 100'000;
  uint64_t seed = 1;
  // Of the group, in milliseconds: a test has no time for the usual ones.
  int interval_ms = 10'000;
};

absl::StatusOr<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  if (argc < 2) return absl::InvalidArgumentError("feed, process or check");
  arguments.command = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    bool good = true;
    if (name == "--url") {
      arguments.url = value;
    } else if (name == "--member") {
      arguments.member = value;
    } else if (name == "--readings") {
      good = absl::SimpleAtoi(value, &arguments.readings);
    } else if (name == "--homes") {
      good = absl::SimpleAtoi(value, &arguments.homes) && arguments.homes > 0;
    } else if (name == "--seed") {
      good = absl::SimpleAtoi(value, &arguments.seed);
    } else if (name == "--interval-ms") {
      good = absl::SimpleAtoi(value, &arguments.interval_ms) && arguments.interval_ms > 0;
    } else {
      good = false;
    }
    if (!good) return absl::InvalidArgumentError(absl::StrCat(name, " ", value));
  }
  return arguments;
}

absl::Status Feed(const Arguments& arguments, stream::EventStreamStore* events) {
  MUSTER_RETURN_IF_ERROR(events->Create(kStream, {.partitions = kPartitions}));
  MUSTER_ASSIGN_OR_RETURN(const auto producer,
                          stream::EventProducer::Open(events, kStream, {}, base::RealClock()));
  for (uint64_t next = 0; next < arguments.readings;) {
    std::vector<stream::NewEvent> batch;
    for (; next < arguments.readings && batch.size() < kBatch; ++next) {
      const Reading reading = MakeReading(arguments.seed, next, arguments.homes);
      batch.push_back({.key = reading.home, .body = Encode(reading)});
    }
    for (const auto& place : producer->SendAll(std::move(batch))) {
      MUSTER_RETURN_IF_ERROR(place.status());
    }
  }
  std::printf("fed %llu readings\n", static_cast<unsigned long long>(arguments.readings));
  return absl::OkStatus();
}

// Until SIGTERM or SIGINT.
absl::Status Process(const Arguments& arguments, const stream::processor::ProcessorStores& stores,
                     const std::stop_token& stop) {
  MUSTER_RETURN_IF_ERROR(stores.events->Create(kStream, {.partitions = kPartitions}));
  TotalsKeeper keeper(stores.sync);
  const absl::Duration interval = absl::Milliseconds(arguments.interval_ms);
  MUSTER_ASSIGN_OR_RETURN(const auto processor, stream::processor::EventProcessor::Start(
                                                    {.stream = kStream,
                                                     .group = kGroup,
                                                     .member = arguments.member,
                                                     .interval = interval,
                                                     .lease = 4 * interval,
                                                     .grace = interval,
                                                     .max_wait = absl::Seconds(1)},
                                                    stores, &keeper, base::RealClock()));
  std::printf("processor %s\n", processor->member().c_str());
  std::fflush(stdout);
  const std::stop_callback stopping(stop, [&processor] { processor->RequestStop(); });
  return processor->Wait();
}

absl::Status Check(const Arguments& arguments, sync::OptimisticSyncStore* sync) {
  std::map<int, Totals> expected;
  for (uint64_t i = 0; i < arguments.readings; ++i) {
    const Reading reading = MakeReading(arguments.seed, i, arguments.homes);
    expected[stream::PartitionOf(reading.home, kPartitions)].Add(reading);
  }
  Totals sum;
  int wrong = 0;
  for (int p = 0; p < kPartitions; ++p) {
    MUSTER_ASSIGN_OR_RETURN(const Totals totals, TotalsKeeper::Recorded(sync, p));
    if (!(totals == expected[p])) ++wrong;
    sum.readings += totals.readings;
    sum.alarms += totals.alarms;
    sum.sum += totals.sum;
  }
  std::printf("%lld readings, %lld alarms, sum %lld; %d of %d partitions are exact\n",
              static_cast<long long>(sum.readings), static_cast<long long>(sum.alarms),
              static_cast<long long>(sum.sum), kPartitions - wrong, kPartitions);
  return wrong == 0 ? absl::OkStatus() : absl::DataLossError("the totals are not exact (yet?)");
}

absl::Status Run(int argc, char** argv) {
  MUSTER_ASSIGN_OR_RETURN(const Arguments arguments, Parse(argc, argv));
  const os::StopSignals signals({.grace = absl::Seconds(30),
                                 .when_late = "smart_homes: took too long to stop",
                                 .when_hurried = "smart_homes: stopped at once"});
  backend::Backends backends;
  MUSTER_ASSIGN_OR_RETURN(
      const auto events,
      backends.OpenEventStreamStore(arguments.url, backend::Mode::kReadWrite, base::RealClock()));
  MUSTER_ASSIGN_OR_RETURN(const auto sync, backends.OpenSyncStore(arguments.url));
  if (arguments.command == "feed") return Feed(arguments, events.get());
  if (arguments.command == "check") return Check(arguments, sync.get());
  if (arguments.command != "process") return absl::InvalidArgumentError(arguments.command);
  return Process(arguments, {.events = events.get(), .sync = sync.get()}, signals.token());
}

}  // namespace
}  // namespace muster::example

int main(int argc, char** argv) {
  const absl::Status status = muster::example::Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "smart_homes: %s\n", status.ToString().c_str());
  return 1;
}
