// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/fragile_handler.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include "muster/handler/handler.h"

namespace {

using muster::handler::Group;
using muster::handler::Handler;
using muster::handler::JobSchema;
using muster::handler::Outcome;
using muster::handler::Results;
using muster::handler::Transaction;
using muster::handler::WorkItem;

class FragileHandler final : public Handler {
 public:
  Outcome Process(const WorkItem& item, Results& results) override {
    for (const Transaction& line : item.transactions()) {
      const absl::string_view text = line.fields()[0];
      if (text == "retry" && item.attempt() == 1)
        return Outcome::Retry(absl::Milliseconds(1), "once");
      // Opening a pipe for reading blocks until another process opens it for writing.
      if (text == "wait") std::ifstream(std::getenv("FRAGILE_GATE"));
      if (text == "dead" && std::getenv("FRAGILE_MENDED") == nullptr) return Outcome::Dead("dead");
      Count(line, results);
    }
    return Outcome::Ok();
  }

 private:
  static constexpr size_t kKeyBytes = 8;

  static void Count(const Transaction& line, Results& results) {
    const absl::string_view text = line.fields()[0].substr(0, kKeyBytes);
    if (text == "abort") {
      std::cout << "what a handler prints is no answer" << std::endl;
      std::cerr << "about to abort" << std::endl;
      std::abort();
    }
    if (text == "throw") throw std::runtime_error("no luck");
    results.Count(line, {{Group{0}, {text}, {muster::base::Decimal::FromInt(1)}}});
  }
};

std::string Version() {
  const char* const version = std::getenv("FRAGILE_VERSION");
  return version == nullptr ? "1" : version;
}

}  // namespace

void RegisterFragile(muster::handler::HandlerRegistry& handlers) {
  handlers.Register({"fragile", Version(), [](const JobSchema&) {
                       return absl::StatusOr<std::unique_ptr<Handler>>(
                           std::make_unique<FragileHandler>());
                     }});
}
