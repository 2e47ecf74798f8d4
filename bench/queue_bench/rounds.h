// Measures two sides in rounds. In a round each side has a short turn, and they do the same: so the
// depth stays what it was, and whatever else the machine does slows both.
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

// At least `messages` single puts into each side, from kCallers threads: each puts
// `puts_per_caller` in a round, and what a round has put is taken again, off the clock.
Rates MeasureSinglePuts(Side& ours, Side& other, int64_t messages, int puts_per_caller,
                        Bodies& bodies);

// Off the clock, in calls of up to `batch`.
void Fill(Side& side, int64_t messages, int batch, Bodies& bodies);
void Drain(Side& side, int64_t messages, int batch);

double SecondsOf(const std::function<void()>& work);

}  // namespace muster::queue_bench
