// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_bench/arguments.h"

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/queue_bench/check.h"
#include "bench/queue_bench/side.h"

namespace muster::queue_bench {
namespace {

constexpr absl::string_view kUsage =
    "usage: queue_bench [--messages N] [--depth N] [--queues N] [--passed N] [--beanstalkd N] "
    "DIRECTORY";

struct Number {
  int64_t* value;
  int64_t least;
};

}  // namespace

Arguments ParseArguments(int argc, char** argv) {
  Arguments arguments;
  const std::map<absl::string_view, Number> numbers = {
      {"--messages", {&arguments.messages, kBatch}}, {"--depth", {&arguments.depth, kDepth + 1}},
      {"--queues", {&arguments.queues, 1}},          {"--passed", {&arguments.passed, 0}},
      {"--beanstalkd", {&arguments.beanstalkd, 0}},
  };
  for (int i = 1; i < argc; ++i) {
    const absl::string_view name = argv[i];
    const auto number = numbers.find(name);
    if (number != numbers.end()) {
      const auto [value, least] = number->second;
      if (++i == argc || !absl::SimpleAtoi(argv[i], value) || *value < least) {
        Die(absl::StrCat(name, " needs a number of at least ", least));
      }
    } else if (name.empty() || name[0] == '-' || !arguments.directory.empty()) {
      Die(kUsage);
    } else {
      arguments.directory = std::string(name);
    }
  }
  if (arguments.directory.empty()) Die(kUsage);
  if (std::filesystem::exists(arguments.directory)) {
    Die(absl::StrCat(arguments.directory, " is there already; it would be removed"));
  }
  return arguments;
}

}  // namespace muster::queue_bench
