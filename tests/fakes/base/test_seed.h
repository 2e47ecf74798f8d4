// TestSeed: where the random choices of a test begin.
#pragma once

#include <cstdint>

#include "absl/base/config.h"

namespace muster::base::testing {

// The same in every run for the same test, and another one for another test, so that a change is
// not held up by what somebody else's code does once in ten thousand cases. To look for such cases,
// the environment's MUSTER_TEST_SEED overrides it: a number, or `random` for a new one at each
// call. Whoever asks tells the seed where the test fails. Below 2^31. Call it within a test.
uint32_t TestSeed();

// CaseCount: how many cases a random test tries.

// `cases`, or a tenth of them under a sanitizer, where each takes ten times as long.
constexpr int CaseCount(int cases) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  return cases / 10;
#else
  return cases;
#endif
}

}  // namespace muster::base::testing
