// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/rocksdb/collector.h"

#include <stop_token>
#include <utility>

namespace muster::queue::rocksdb {

Collector::Collector(base::Clock* clock, absl::Duration interval, Collect collect)
    : thread_([this, clock, interval, collect = std::move(collect)](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          base::SleepUnlessStopped(clock, interval, stop);
          if (!stop.stop_requested()) collect(&cancelled_);
        }
      }) {}

Collector::~Collector() { cancelled_ = true; }

}  // namespace muster::queue::rocksdb
