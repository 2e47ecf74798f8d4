// SPDX-License-Identifier: Apache-2.0
#include "muster/base/damage.h"

#include <array>
#include <atomic>
#include <cstddef>

namespace muster::base {
namespace {

std::array<std::atomic<uint64_t>, 4> counts = {};

}  // namespace

void NoteDamage(Damaged what) { ++counts.at(static_cast<size_t>(what)); }

uint64_t DamageMet(Damaged what) { return counts.at(static_cast<size_t>(what)); }

}  // namespace muster::base
