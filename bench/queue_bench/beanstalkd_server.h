// SPDX-License-Identifier: Apache-2.0

// beanstalkd as a child of this process.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

namespace muster::queue_bench {

// Started with -f 0, so that it syncs each write. It ends when this object does, and also when the
// thread that started it dies.
class BeanstalkdServer {
 public:
  // Makes `directory` for its log, and answers when it accepts connections; nullptr when it is not
  // installed.
  static std::unique_ptr<BeanstalkdServer> Start(const std::string& directory);
  ~BeanstalkdServer();

  int port() const { return port_; }

 private:
  BeanstalkdServer(pid_t pid, int port) : pid_(pid), port_(port) {}

  const pid_t pid_;
  const int port_;
};

}  // namespace muster::queue_bench
