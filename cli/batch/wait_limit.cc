// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/wait_limit.h"

#include <algorithm>

namespace muster::cli {
namespace {

// gRPC's clock is another one.
constexpr absl::Duration kAlmost = absl::Milliseconds(50);

}  // namespace

WaitLimit::WaitLimit(absl::Duration timeout, MeshClient* mesh, base::Clock* clock,
                     const std::stop_token& stop)
    : clock_(clock),
      deadline_(clock->Monotonic() + timeout),
      on_stop_(stop, [this] { stop_.request_stop(); }) {
  if (timeout == absl::InfiniteDuration()) return;
  mesh->EndCallsBy(deadline_, clock);
  thread_ = std::thread([this] {
    base::SleepUnlessStopped(clock_, left(), stop_.get_token());
    stop_.request_stop();
  });
}

WaitLimit::~WaitLimit() {
  stop_.request_stop();
  if (thread_.joinable()) thread_.join();
}

bool WaitLimit::is_over() const { return left() < kAlmost; }

absl::Duration WaitLimit::left() const {
  return std::max(deadline_ - clock_->Monotonic(), absl::ZeroDuration());
}

}  // namespace muster::cli
