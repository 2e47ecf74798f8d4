// SPDX-License-Identifier: Apache-2.0

// LetOthersRun: what a test does between two looks at what it waits for, where nothing can wake it.
#pragma once

#include <chrono>
#include <thread>

namespace muster::base {

// Beside other programs that compute, std::this_thread::yield gives them a whole time slice each:
// some four milliseconds a look instead of a tenth: tests of thousands of looks took minutes.
inline void LetOthersRun() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

}  // namespace muster::base
