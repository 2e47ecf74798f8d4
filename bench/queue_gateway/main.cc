// SPDX-License-Identifier: Apache-2.0

// The load of bench/queue_gateway/gateway_bench: puts or takes messages by the Queue Storage API,
// at any server that speaks it on this machine.
//
//   gateway_load PORT create|put|take [--messages N] [--queues N] [--connections N] [--rate N] …
//
// `take` gets 32 messages at a time and deletes them one by one. One thread serves all connections.
// Prints a line of JSON.
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "bench/queue_gateway/driver.h"
#include "bench/queue_gateway/work.h"

namespace muster::gateway_bench {
namespace {

struct Arguments {
  int port = 0;
  std::string verb;
  Scale scale;
  Pace pace;
};

std::unique_ptr<Work> MakeWork(const Arguments& arguments) {
  if (arguments.verb == "create") return std::make_unique<CreateWork>(arguments.scale);
  if (arguments.verb == "put") return std::make_unique<PutWork>(arguments.scale);
  return std::make_unique<TakeWork>(arguments.scale);
}

void Print(const Outcome& outcome) {
  std::cout << absl::StrFormat(
                   "{\"messages\": %d, \"seconds\": %.3f, \"per_second\": %.0f, \"p50_ms\": %.2f, "
                   "\"p99_ms\": %.2f, \"max_ms\": %.2f, \"client_cpu\": %.2f}",
                   outcome.messages, outcome.seconds,
                   static_cast<double>(outcome.messages) / outcome.seconds, outcome.Percentile(0.5),
                   outcome.Percentile(0.99), outcome.Percentile(1),
                   outcome.cpu_seconds / outcome.seconds)
            << std::endl;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("The load of gateway_bench.");
  app.add_option("port", arguments.port)->required()->check(CLI::Range(1, 65535));
  app.add_option("verb", arguments.verb)
      ->required()
      ->check(CLI::IsMember({"create", "put", "take"}));
  app.add_option("--messages", arguments.scale.messages)->check(CLI::PositiveNumber);
  app.add_option("--queues", arguments.scale.queues)->check(CLI::PositiveNumber);
  app.add_option("--prefix", arguments.scale.prefix);
  app.add_option("--text-bytes", arguments.scale.text_bytes)->check(CLI::Range(1, 65536));
  app.add_option("--get", arguments.scale.get)->check(CLI::Range(1, 32));
  app.add_option("--connections", arguments.scale.connections)->check(CLI::Range(1, 10000));
  app.add_option("--rate", arguments.pace.messages_per_second)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const std::unique_ptr<Work> work = MakeWork(arguments);
  Print(RunWork("127.0.0.1", arguments.port, arguments.scale.connections, arguments.pace,
                work.get()));
  return 0;
}

}  // namespace
}  // namespace muster::gateway_bench

int main(int argc, char** argv) { return muster::gateway_bench::Main(argc, argv); }
