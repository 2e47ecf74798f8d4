// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_bench/report.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::queue_bench {
namespace {

void PrintRates(absl::string_view step, Rates rates, absl::string_view other) {
  absl::PrintF("{\"step\":\"%s\",\"messages_per_second\":%.0f,\"%s_per_second\":%.0f,", step,
               rates.ours, other, rates.other);
  absl::PrintF("\"ratio\":%.2f}\n", rates.ours / rates.other);
  std::fflush(stdout);  // a step may take minutes
}

}  // namespace

void Report::BesideRaw(absl::string_view verb, absl::string_view at, Rates rates) {
  steps_.push_back({std::string(verb), std::string(at), rates.ours, rates.ours / rates.other});
  PrintRates(absl::StrCat(verb, "_", at), rates, "raw");
}

void Report::BesideBeanstalkd(absl::string_view verb, Rates rates) {
  PrintRates(absl::StrCat(verb, "_beside_beanstalkd"), rates, "beanstalkd");
}

void Report::Value(absl::string_view step, absl::string_view unit, double value) {
  absl::PrintF("{\"step\":\"%s\",\"%s\":%.3f}\n", step, unit, value);
  std::fflush(stdout);
}

void Report::Skipped(absl::string_view step, absl::string_view why) {
  absl::PrintF("{\"step\":\"%s\",\"skipped\":\"%s\"}\n", step, why);
  std::fflush(stdout);
}

void Report::Flatness(const std::vector<std::string>& verbs) {
  for (const std::string& verb : verbs) {
    PrintFlatness(verb, "rate", &Step::rate);
    PrintFlatness(verb, "ratio_to_raw", &Step::ratio);
  }
}

void Report::PrintFlatness(absl::string_view verb, absl::string_view of,
                           double Step::*figure) const {
  std::vector<Step> steps;
  std::copy_if(steps_.begin(), steps_.end(), std::back_inserter(steps),
               [&](const Step& step) { return step.verb == verb; });
  const auto [worst, best] =
      std::minmax_element(steps.begin(), steps.end(),
                          [&](const Step& a, const Step& b) { return a.*figure < b.*figure; });
  absl::PrintF(
      "{\"step\":\"flatness\",\"verb\":\"%s\",\"of\":\"%s\",\"worst\":\"%s\",\"to_best\":%.2f}\n",
      verb, of, worst->at, (*worst).*figure / (*best).*figure);
}

}  // namespace muster::queue_bench
