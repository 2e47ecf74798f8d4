// CaseCount: how many cases a random test tries.
#pragma once

#include "absl/base/config.h"

namespace muster::base::testing {

// `cases`, or a tenth of them under a sanitizer, where each takes ten times as long.
constexpr int CaseCount(int cases) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  return cases / 10;
#else
  return cases;
#endif
}

}  // namespace muster::base::testing
