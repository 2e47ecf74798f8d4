// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_bench/bodies.h"

namespace muster::queue_bench {

std::vector<std::string> Bodies::Next(int count) {
  std::vector<std::string> bodies(static_cast<size_t>(count));
  for (std::string& body : bodies) body = NextBody();
  return bodies;
}

std::string Bodies::NextBody() {
  std::string body;
  body.reserve(kBodyBytes);
  while (body.size() < kBodyBytes) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    body.append(reinterpret_cast<const char*>(&state_), sizeof(state_));
  }
  return body;
}

}  // namespace muster::queue_bench
