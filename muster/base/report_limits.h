// SPDX-License-Identifier: Apache-2.0

// What a report takes of a job. A job file is held to the same bounds, so that a batch of a job
// that was accepted can be counted.
#pragma once

#include <cstddef>

namespace muster::base {

inline constexpr size_t kMaxGroups = 64;
// Keys and measures become columns of one table: common databases must be able to hold them.
inline constexpr size_t kMaxGroupColumns = 64;

}  // namespace muster::base
