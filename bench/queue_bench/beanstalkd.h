// SPDX-License-Identifier: Apache-2.0

// Beanstalkd: a work queue much like the engine, but behind a socket, as a side.
//
// With -f 0 its one thread writes its log for each message that is put or deleted, calls fsync, and
// only then answers: as durable as the engine, at one fsync for each message, however many a client
// sends ahead. A reserve writes nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/queue_bench/connection.h"
#include "bench/queue_bench/side.h"

namespace muster::queue_bench {

// Each caller has its own connection. A call sends all its commands, then reads all the answers.
class Beanstalkd final : public Side {
 public:
  explicit Beanstalkd(int port);

  void Put(int caller, std::vector<std::string> bodies) override;
  void Take(int count) override;

 private:
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace muster::queue_bench
