// DecisionHash: what was decided, as one hash, so that two runs can be told apart at a glance.
#pragma once

#include <cstdint>
#include <string>

#include "muster/base/fingerprint.h"
#include "muster/scaling/policy/decision.h"

namespace muster::scaling::replay {

// A decision is logged when it differs from the one before it in replicas, tasks, standby, wanted,
// reason or feasibility.
class DecisionHash {
 public:
  void Add(int64_t second, const scaling::policy::Decision& decision);
  // 32 hex digits.
  std::string Hash() const { return fingerprinter_.Digest().ToHex(); }

 private:
  base::Fingerprinter fingerprinter_;
  std::string last_;
};

}  // namespace muster::scaling::replay
