// SPDX-License-Identifier: Apache-2.0

// Measures two sides in rounds. In a round each side has a short turn and does the same work: so
// the depth stays the same, and other load on the machine slows both sides.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/queue_bench/bodies.h"
#include "bench/queue_bench/side.h"

namespace muster::queue_bench {

// Messages per second.
struct Rates {
  double ours = 0;
  double other = 0;
};

struct BatchRates {
  Rates put;
  Rates take;
};

// Moves at least `messages` through each side. In its turn a side puts a batch, takes a batch, and
// so on: the depth is never more than kBatch above what it was.
BatchRates MeasureBatches(Side& ours, Side& other, int64_t messages, Bodies& bodies);

// Makes at least `messages` single puts into each side, from kCallers threads: each thread puts
// `puts_per_caller` messages in a round. The messages of a round are taken again, off the clock.
Rates MeasureSinglePuts(Side& ours, Side& other, int64_t messages, int puts_per_caller,
                        Bodies& bodies);

// These move messages off the clock, in calls of up to `batch`.
void Fill(Side& side, int64_t messages, int batch, Bodies& bodies);
void Drain(Side& side, int64_t messages, int batch);

double SecondsOf(const std::function<void()>& work);

}  // namespace muster::queue_bench
