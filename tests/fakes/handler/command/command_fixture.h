// SPDX-License-Identifier: Apache-2.0

// Shell programs and named pipes for the tests of command handlers.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/handler/command/command_handler.h"
#include "muster/handler/sample_item.h"
#include "muster/os/file_descriptor.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::handler::command {

// Shell: an answer that counts everything; its row holds the program's pid and the number of the
// item.
inline constexpr char kAnswer[] =
    R"(n=$((n+1)); echo '{"item":"1/7","outcome":"ok","groups":{"g":[{"k":"'$$'","m":'$n'}]}}')";

// A named pipe that a program holds open while it lives.
class Fifo {
 public:
  explicit Fifo(std::string path) : path_(std::move(path)) { mkfifo(path_.c_str(), 0600); }
  // Blocks until a program has opened it for writing.
  void AwaitOpened() { fd_ = os::FileDescriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC)); }
  // Blocks until every process that had it open has closed it or is dead.
  void AwaitClosed() {
    std::array<char, 64> ignored;
    while (read(fd_.get(), ignored.data(), ignored.size()) > 0) {
    }
    fd_.Close();
  }
  // Blocks until a program reads it.
  void LetGo() { std::ofstream(path_) << "go\n"; }

 private:
  const std::string path_;
  os::FileDescriptor fd_;
};

class CommandHandlerTest : public testing::Test {
 protected:
  CommandHandlerTest() {
    options_.working_dir = folder_.path();
    options_.first_restart_delay = absl::ZeroDuration();
  }

  void Program(const std::string& script) { options_.argv = {"sh", "-c", script}; }
  void UseFakeClock() { options_.clock = &clock_; }

  handler::Handler& handler() {
    if (handler_ == nullptr) handler_ = *CommandHandlerFactory(options_)(schema_);
    return *handler_;
  }

  handler::ItemContext Context() const {
    handler::ItemContext context;
    context.batch = 1;
    context.index = 7;
    context.stop_token = stop_.get_token();
    return context;
  }

  handler::Outcome Process(std::vector<std::vector<std::string>> rows = {{"a"}, {"b"}}) {
    return Process(handler::SampleItem(std::move(rows), Context()));
  }
  handler::Outcome Process(const handler::SampleItem& item) {
    handler::Results results(&schema_, item.size());
    handler::Outcome outcome = handler().Process(item.get(), results);
    counted_ = results.counted();
    rows_.clear();
    for (const auto& partial : results.TakePartials()) {
      for (const auto& row : partial.rows) {
        rows_.emplace_back(row.keys[0], row.measures[0].ToString());
      }
    }
    return outcome;
  }

  // Runs Process on another thread; makes the handler first.
  std::future<handler::Outcome> ProcessBeside() {
    handler();
    return std::async(std::launch::async, [this] { return Process(); });
  }

  // Waits until the handler sleeps towards exactly this time from now.
  void AwaitAlarmIn(absl::Duration delay) {
    while (clock_.NextDeadline() != clock_.Monotonic() + delay) base::LetOthersRun();
  }

  const os::TempDir folder_;
  base::LogCapture log_;
  base::FakeClock clock_;
  std::stop_source stop_;
  const handler::JobSchema schema_{
      "job", "r1", {"c"}, {{"g", {"k"}, {{"m", handler::MeasureSchema::Type::kInt, 0}}}}};
  CommandOptions options_;
  std::unique_ptr<handler::Handler> handler_;
  int64_t counted_ = 0;
  std::vector<std::pair<std::string, std::string>> rows_;
};

}  // namespace muster::handler::command
