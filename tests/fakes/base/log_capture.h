// SPDX-License-Identifier: Apache-2.0

// LogCapture: collects the log lines of its lifetime, for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/base/log.h"
#include "muster/base/mutex.h"

namespace muster::base {

// Takes the place of stderr until destroyed. Thread-safe; one at a time.
class LogCapture {
 public:
  explicit LogCapture(LogLevel min_level = LogLevel::kDebug) : level_before_(MinLogLevel()) {
    SetMinLogLevel(min_level);
    sink_before_ = SetLogSink([this](absl::string_view line) {
      MutexLock lock(&mu_);
      lines_.emplace_back(line);
    });
  }

  ~LogCapture() {
    SetLogSink(std::move(sink_before_));
    SetMinLogLevel(level_before_);
  }

  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  std::vector<std::string> lines() const {
    MutexLock lock(&mu_);
    return lines_;
  }

 private:
  const LogLevel level_before_;
  LogSink sink_before_;
  mutable Mutex mu_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::base
