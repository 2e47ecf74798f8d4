// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/rules.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "muster/base/names.h"

namespace muster::scaling::rules {

namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

bool IsWrittenSo(absl::string_view name, absl::string_view queue) {
  if (!absl::ConsumePrefix(&queue, name)) return false;
  if (queue.empty()) return true;
  return absl::ConsumePrefix(&queue, "-") && !queue.empty() &&
         std::all_of(queue.begin(), queue.end(), IsDigit);
}

// The part before the hash only tells the partition to compare with; the name derived from `name`
// decides.
bool IsMadeOf(absl::string_view name, absl::string_view queue) {
  const absl::string_view start = base::BeforeHash(queue);
  if (start.empty()) return false;
  if (queue == base::MakeSafeName(name)) return true;
  const auto digits = std::find_if_not(start.rbegin(), start.rend(), IsDigit).base();
  int64_t partition = 0;
  return absl::SimpleAtoi(start.substr(static_cast<size_t>(digits - start.begin())), &partition) &&
         queue == base::PartitionName(name, partition);
}

}  // namespace

bool MatchesQueue(absl::string_view name, absl::string_view queue) {
  return IsWrittenSo(name, queue) || IsMadeOf(name, queue);
}

const Target* Rules::FindTarget(absl::string_view id) const {
  const auto found = std::find_if(targets.begin(), targets.end(),
                                  [&](const Target& target) { return target.id == id; });
  return found == targets.end() ? nullptr : &*found;
}

const Operand* Rules::FindOperand(absl::string_view name) const {
  const auto found = std::find_if(operands.begin(), operands.end(),
                                  [&](const Operand& operand) { return operand.name == name; });
  return found == operands.end() ? nullptr : &*found;
}

bool IsQueueMetric(Metric metric) { return metric <= Metric::kFinished; }

Kind KindOfMetric(Metric metric) {
  switch (metric) {
    case Metric::kOldestAge:
    case Metric::kServiceTime:
      return Kind::kTime;
    case Metric::kCpu:
    case Metric::kThrottled:
      return Kind::kShare;
    default:
      return Kind::kPlain;
  }
}

}  // namespace muster::scaling::rules
