// SPDX-License-Identifier: Apache-2.0

// ServiceProgram: a service as users run it: a separate program, seen through its log, its port and
// its exit code.
#pragma once

#include <sys/types.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/base/mutex.h"

namespace muster {

// Not thread-safe. A step that fails ends the process: a test cannot go on without its program.
class ServiceProgram {
 public:
  // Starts argv[0], which is a path, with nothing on its stdin.
  explicit ServiceProgram(const std::vector<std::string>& argv);
  // Kills it if it still runs.
  ~ServiceProgram();
  ServiceProgram(const ServiceProgram&) = delete;
  ServiceProgram& operator=(const ServiceProgram&) = delete;

  // Returns the first line on its stderr, so far or to come, that contains `text`. Returns "" if
  // the program ends without one.
  std::string AwaitLine(absl::string_view text);
  // Returns the HOST:PORT at which it listens, from its log.
  std::string AwaitAddress();

  void Signal(int signal) const;
  // Waits for its end. Returns the exit code, or minus the signal that killed it.
  int Wait();

 private:
  void ReadLog(int fd);

  pid_t process_ = 0;
  int exit_ = 0;
  bool waited_ = false;
  std::thread reader_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster
