// SPDX-License-Identifier: Apache-2.0

// RollingUpdate: how the replicas of a target that run an earlier program, or have earlier
// arguments, give way to those of its present program, a few at a time, so that the work goes on
// meanwhile.
//
//   4 are wanted, and the target may have 5:
//
//   outdated   starting   ready
//       4          1        0     one more starts
//       4          0        1     it is ready, so an outdated one drains
//       3          1        1     and so on, until none is outdated
//
// Where the target may have no more than are wanted, an outdated one drains once its successor has
// been started: fewer are ready for as long as that one takes.
#pragma once

namespace muster::actuator::process {

// The replicas of a target that serve, those that drain left out.
struct ServingCount {
  int outdated = 0;
  // These run the present program.
  int starting = 0;
  int ready = 0;

  int total() const { return outdated + starting + ready; }
};

// An immutable value. Without outdated replicas it answers what an order alone needs.
class RollingUpdate {
 public:
  // `most`: what the target may have, however many are wanted.
  RollingUpdate(int wanted, int most);

  // How many replicas start now.
  int ToStart(const ServingCount& serving) const;

  struct Departures {
    int outdated = 0;  // of the outdated ones: successors do their work
    int surplus = 0;   // of all that stay then: there are more than wanted
  };
  // Which go, once those of ToStart have been started. If none could be, none goes for it.
  Departures ToLetGo(const ServingCount& serving) const;

 private:
  const int wanted_;
  const int step_;   // how many are replaced at a time
  const int spare_;  // how many of these may be there beside those that are wanted
};

}  // namespace muster::actuator::process
