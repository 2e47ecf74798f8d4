// SPDX-License-Identifier: Apache-2.0

// One of the two programs that event_bench compares: events of 1 KiB go to as many partitions as
// there are producers, and groups read them all. A failure ends the program.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace event_bench {

inline constexpr int kProducers = 4;  // each has a partition of its own
inline constexpr int kGroups = 2;
inline constexpr size_t kBodyBytes = 1024;

[[noreturn]] inline void Die(absl::string_view why) {
  std::cerr << "event_bench: " << why << '\n';
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): nothing is to be cleaned up
}

// The body of a partition's event `number`, from 1 on: a reader checks the order by it.
std::string BodyOf(int64_t number);
void CheckBody(absl::string_view body, int64_t number);

class Side {
 public:
  virtual ~Side() = default;

  // Makes an empty stream; called once, before all others.
  virtual void Make(int round) = 0;
  virtual void Remove() = 0;
  // Appends `events` to the producer's partition, `batch` at a time; all of a batch are
  // acknowledged before the next begins. One thread for each producer.
  virtual void Append(int producer, int64_t events, int batch) = 0;
  // Reads the first `events` of a partition, in their order. One thread for each group and
  // partition.
  virtual void Read(int group, int partition, int64_t events) = 0;
};

std::unique_ptr<Side> MusterSide(const std::string& url);
// nats.c alone: asynchronous publishes, and an ordered consumer for each reader. `is_guarded`: a
// lost event of a batch refuses those behind it, as in muster's appends; otherwise it leaves a
// hole.
std::unique_ptr<Side> PlainSide(const std::string& url, bool is_guarded);

}  // namespace event_bench
