// Station: a queue and the replicas that work on it, as the simulator has them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/scaling/policy/observation.h"
#include "muster/scaling/replay/options.h"
#include "muster/scaling/replay/tally.h"
#include "muster/scaling/replay/trace.h"

namespace muster::scaling::replay {

// Times are microseconds since the trace's start. Items are served first in, first out. Work goes
// to the replica that worked last, so that those who are not needed stay idle. Not thread-safe.
class Station {
 public:
  virtual ~Station() = default;

  // Lets time pass until `now_us`, and takes in what comes by then, or at that instant.
  virtual void AdvanceTo(int64_t now_us) = 0;

  // So many replicas, ready and starting, shall there be from now on. To shrink, those that start
  // go first (the one that needs longest), then those that idle (longest idle first), then busy
  // ones, which finish what they hold.
  virtual void Resize(int replicas) = 0;

  // Writes `fleet` and one reading of the queue; `start` is the trace's.
  virtual void Observe(absl::Time start, scaling::policy::Observation* observation) const = 0;

  // The items that wait or are held count as violations from here on, and are gone.
  virtual void GiveUp() = 0;

  virtual int64_t total_in() const = 0;
  virtual int64_t outstanding() const = 0;  // waiting or held
  virtual bool all_arrived() const = 0;
  virtual int committed() const = 0;  // ready and starting
  virtual int ready() const = 0;
  virtual const Tally& tally() const = 0;
};

// Begins at 0 with options.min ready replicas. `trace` must outlive it.
std::unique_ptr<Station> MakeStation(const Trace& trace, const SimOptions& options);

}  // namespace muster::scaling::replay
