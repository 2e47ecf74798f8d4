// A worker in C++ on a queue of a queue gateway: turns the orders that clients put into invoices,
// which clients get from another queue of the gateway. README.md has the commands.
//
//   order_worker [--nats nats://HOST:PORT] [--account NAME] [--prices FILE]
#include <cstdio>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "examples/gateway_orders/invoices.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/base/log.h"
#include "muster/base/names.h"
#include "muster/base/status.h"
#include "muster/listener/listener.h"
#include "muster/os/stop_signals.h"

namespace muster::example {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(20);
constexpr int kThreads = 4;

struct Arguments {
  std::string nats = "nats://127.0.0.1:4222";
  std::string account = "devstoreaccount1";
  std::string prices = "prices.csv";
};

// Works until SIGTERM or SIGINT, and finishes the orders that it has begun.
absl::Status Work(const Arguments& arguments, const std::stop_token& stop) {
  const std::string instance = base::MakeInstanceId("order-worker");
  backend::NatsOptions nats;
  nats.connection.name = instance;
  nats.holder = instance;
  backend::Backends backends(nats);
  base::Clock* const clock = base::RealClock();
  MUSTER_ASSIGN_OR_RETURN(const auto queues,
                          backends.OpenQueueStore(arguments.nats, backend::Mode::kReadWrite,
                                                  backend::Holders::kElsewhere, clock));
  MUSTER_ASSIGN_OR_RETURN(const auto triggers, backends.OpenTriggerBus(arguments.nats));

  listener::ListenerOptions options;
  options.partitions = {{arguments.account, "orders"}};
  options.output_queue = queue::QueueId{arguments.account, "invoices"};
  options.instance = instance;
  options.max_dequeue_tasks = kThreads;
  options.stops_patiently = true;
  const auto make = [&arguments]() -> absl::StatusOr<std::unique_ptr<listener::Subscriber>> {
    return std::make_unique<InvoiceSubscriber>(arguments.prices);
  };
  MUSTER_ASSIGN_OR_RETURN(const auto listener,
                          listener::QueueListener::Create(std::move(options), {}, make,
                                                          queues.get(), triggers.get(), clock));
  MUSTER_RETURN_IF_ERROR(listener->Start());
  base::Log(base::kInfo, "working", {{"instance", instance}, {"account", arguments.account}});
  base::SleepUnlessStopped(clock, absl::InfiniteDuration(), stop);
  const absl::Status stopped = listener->Stop(kGrace);
  const listener::ListenerCounters done = listener->counters();
  base::Log(base::kInfo, "stopped", {{"invoices", done.messages_done}});
  return stopped;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Turns orders in a queue gateway's queue into invoices in another one.");
  app.add_option("--nats", arguments.nats, "The gateway's NATS server")->capture_default_str();
  app.add_option("--account", arguments.account, "The account of the queues")
      ->capture_default_str();
  app.add_option("--prices", arguments.prices, "A file with item,price in each line")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const os::StopSignals signals({.grace = 2 * kGrace,
                                 .when_late = "order_worker: took too long to stop",
                                 .when_hurried = "order_worker: stopped at once"});
  const absl::Status worked = Work(arguments, signals.token());
  if (worked.ok()) return 0;
  std::fprintf(stderr, "order_worker: %s\n", worked.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace muster::example

int main(int argc, char** argv) { return muster::example::Main(argc, argv); }
