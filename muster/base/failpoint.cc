// SPDX-License-Identifier: Apache-2.0
#include "muster/base/failpoint.h"

#ifdef MUSTER_FAILPOINTS

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "muster/base/mutex.h"

namespace muster::base {

std::atomic<bool> failpoints_armed{false};

namespace {

constexpr char kVariable[] = "MUSTER_FAILPOINT";

struct Armed {
  std::string name;
  int left = 0;  // passages to come, with the one that acts
  std::function<void()> act;
};

Mutex armed_mu;
// Never destroyed: threads may pass failpoints while the process ends.
Armed& ArmedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(armed_mu) {
  static Armed* const armed = new Armed;
  return *armed;
}

void Arm(Armed armed) {
  MutexLock lock(&armed_mu);
  failpoints_armed = armed.left > 0;
  ArmedLocked() = std::move(armed);
}

// SIGKILL: no other way to die leaves less behind.
void Die() { kill(getpid(), SIGKILL); }

// A mistake ends the process: a test must not pass because it armed nothing.
const bool kArmedByEnvironment = [] {
  const char* const text = std::getenv(kVariable);  // NOLINT(concurrency-mt-unsafe): alone
  if (text == nullptr || ArmFailpointToKill(text)) return true;
  std::fprintf(stderr, "%s=%s: want NAME or NAME:N\n", kVariable, text);
  std::abort();
}();

}  // namespace

void PassFailpoint(absl::string_view name) {
  std::function<void()> act;
  {
    MutexLock lock(&armed_mu);
    Armed& armed = ArmedLocked();
    if (armed.name != name || --armed.left != 0) return;
    failpoints_armed = false;
    act = armed.act;
  }
  act();
}

bool ArmFailpointToKill(absl::string_view text) {
  if (text.empty()) {
    Arm({});
    return true;
  }
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  int nth = 1;
  if (parts.size() > 2 || parts[0].empty()) return false;
  if (parts.size() == 2 && (!absl::SimpleAtoi(parts[1], &nth) || nth < 1)) return false;
  Arm({parts[0], nth, Die});
  return true;
}

ArmedFailpoint::ArmedFailpoint(std::string name, int nth, std::function<void()> act) {
  Arm({std::move(name), nth, std::move(act)});
}

ArmedFailpoint::~ArmedFailpoint() { Arm({}); }

}  // namespace muster::base

#endif
