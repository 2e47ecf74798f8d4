// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/witness_handler.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace {

using muster::handler::Group;
using muster::handler::Handler;
using muster::handler::JobSchema;
using muster::handler::Outcome;
using muster::handler::Results;
using muster::handler::Transaction;
using muster::handler::WorkItem;

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

class Witness final : public Handler {
 public:
  Witness()
      : log_(
            open(Variable("WITNESS_LOG").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)),
        poison_(Variable("WITNESS_POISON")) {
    if (!absl::SimpleAtoi(Variable("WITNESS_FAILS"), &fails_)) fails_ = 0;
  }
  ~Witness() override { close(log_); }

  Outcome Process(const WorkItem& item, Results& results) override {
    const Transaction& first = item.transactions().front();
    const std::string call = absl::StrCat(first.fields()[0], " ", first.fields()[1], " ",
                                          item.transactions().back().fields()[1], " ", getpid());
    Write(absl::StrCat("B ", call, "\n"));
    const bool fails = IsPoison(absl::StrCat(first.fields()[0], " ", first.fields()[1])) ||
                       (!item.last_attempt() && static_cast<int>(random_() % 100) < fails_);
    Write(absl::StrCat("E ", call, fails ? " retry\n" : " ok\n"));
    if (fails) return Outcome::Retry(absl::Milliseconds(20), "as the test wants it");
    for (const Transaction& line : item.transactions()) {
      results.Count(line, {{Group{0}, {"all"}, {muster::base::Decimal::FromInt(1)}}});
    }
    return Outcome::Ok();
  }

 private:
  // One write for a line: the kernel then appends it whole.
  void Write(const std::string& line) const {
    if (write(log_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  }

  // Read at each call: a test mends the handler while it runs.
  bool IsPoison(const std::string& transaction) const {
    std::ifstream file(poison_);
    for (std::string line; std::getline(file, line);) {
      if (line == transaction) return true;
    }
    return false;
  }

  const int log_;
  const std::string poison_;
  int fails_ = 0;
  std::minstd_rand random_{static_cast<unsigned>(getpid())};
};

}  // namespace

void RegisterWitness(muster::handler::HandlerRegistry& handlers) {
  handlers.Register({"witness", "1", [](const JobSchema&) {
                       return absl::StatusOr<std::unique_ptr<Handler>>(std::make_unique<Witness>());
                     }});
}
