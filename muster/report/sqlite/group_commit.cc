// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/group_commit.h"

#include <algorithm>
#include <vector>

namespace muster::report::sqlite {
namespace {

// A transaction stays short: others wait for the file meanwhile.
constexpr size_t kMaxGroup = 64;

}  // namespace

absl::Status GroupCommit::Run(Change change) {
  Member own{.change = change};
  base::MutexLock lock(&mu_);
  waiting_.push_back(&own);
  while (!own.done) {
    if (led_) {
      changed_.Wait(&mu_);
      continue;
    }
    const auto end =
        waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kMaxGroup));
    const std::vector<Member*> group(waiting_.begin(), end);
    waiting_.erase(waiting_.begin(), end);
    led_ = true;
    mu_.Unlock();
    commit_(group);
    mu_.Lock();
    led_ = false;
    for (Member* const member : group) member->done = true;
    changed_.NotifyAll();
  }
  return own.result;
}

size_t GroupCommit::waiting() {
  base::MutexLock lock(&mu_);
  return waiting_.size();
}

}  // namespace muster::report::sqlite
