// Outcome: what became of a batch, as `muster run` and `muster batch submit --wait` print it.
#pragma once

#include <cstdint>
#include <string>

#include "muster/job/job.h"
#include "muster/report/report_store.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::cli {

struct Outcome {
  uint64_t batch = 0;
  std::string job;
  report::Progress counted;
  double seconds = 0;
  double transactions_per_second = 0;
  bool complete = false;
  bool late = false;  // later than its job's sla promised

  nlohmann::ordered_json Json() const;
  // "batch 7: 541,909 transactions = …", and how long it took; two lines.
  std::string Text() const;
  // What of the batch is not in its totals, and which command shows it; a line each. `where` names
  // the place of the batch in those commands, as DataDirOption does.
  std::string Losses(const job::Tolerance& tolerate, const std::string& where) const;
  // The share of the batch that was rejected or given up decides, and then the promised time.
  int Code(const job::Tolerance& tolerate) const;
};

}  // namespace muster::cli
