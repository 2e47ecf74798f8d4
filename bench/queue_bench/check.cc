// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_bench/check.h"

#include <cstdio>
#include <cstdlib>

namespace muster::queue_bench {

void Die(absl::string_view why) {
  std::fprintf(stderr, "queue_bench: %.*s\n", static_cast<int>(why.size()), why.data());
  std::_Exit(1);
}

void Check(const absl::Status& status) {
  if (!status.ok()) Die(status.ToString());
}

}  // namespace muster::queue_bench
