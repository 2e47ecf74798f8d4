// SPDX-License-Identifier: Apache-2.0

// Report: the lines of JSON, one for each step as it ends.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "bench/queue_bench/rounds.h"

namespace muster::queue_bench {

class Report {
 public:
  // Prints the rates of a verb beside raw RocksDB; `at` names the place, such as "at_depth_1000".
  //   {"step":"put_32_at_depth_1000","messages_per_second":…,"raw_per_second":…,"ratio":…}
  void BesideRaw(absl::string_view verb, absl::string_view at, Rates rates);

  //   {"step":"put_32_beside_beanstalkd","messages_per_second":…,"beanstalkd_per_second":…,…}
  void BesideBeanstalkd(absl::string_view verb, Rates rates);

  void Value(absl::string_view step, absl::string_view unit, double value);
  void Skipped(absl::string_view step, absl::string_view why);

  // For each verb of `verbs`, over the steps beside raw RocksDB: prints the lowest rate over the
  // highest, and the lowest ratio to raw over the highest.
  //   {"step":"flatness","verb":"put_32","of":"rate","worst":"at_depth_1000000","to_best":0.87}
  void Flatness(const std::vector<std::string>& verbs);

 private:
  struct Step {
    std::string verb;
    std::string at;
    double rate;
    double ratio;
  };

  void PrintFlatness(absl::string_view verb, absl::string_view of, double Step::*figure) const;

  std::vector<Step> steps_;
};

}  // namespace muster::queue_bench
