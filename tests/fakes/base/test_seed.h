// SPDX-License-Identifier: Apache-2.0

// TestSeed: where the random choices of a test begin.
#pragma once

#include <cstdint>

namespace muster::base::testing {

// Returns the seed of the current test: the same in every run, and another one for another test, so
// that a change is not held up by an unrelated failure once in ten thousand cases. To look for such
// cases, the environment's MUSTER_TEST_SEED overrides the seed: a number, or `random` for a new
// seed at each call. The caller prints the seed when the test fails. The seed is below 2^31. Call
// it within a test.
uint32_t TestSeed();

// CaseCount: how many cases a random test tries.

// `cases`; a quarter of them where the environment has MUSTER_TEST_SMALL_COUNTS, as in the gate; a
// tenth under a sanitizer, where each takes ten times as long.
int CaseCount(int cases);

}  // namespace muster::base::testing
