// SPDX-License-Identifier: Apache-2.0

// A worker's result for one item, as it travels to the aggregator.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "bench/retail/totals.h"

namespace rival {

std::string EncodePartial(uint64_t item, const bench::Totals& totals);

uint64_t ItemOf(absl::string_view partial);
// New keys in `totals` are views into `partial`.
void AddPartial(absl::string_view partial, bench::Totals* totals);

}  // namespace rival
