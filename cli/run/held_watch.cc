// SPDX-License-Identifier: Apache-2.0
#include "cli/run/held_watch.h"

#include <utility>

#include "absl/time/time.h"
#include "muster/base/log.h"
#include "muster/base/status.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);
// A key that has just gone on looks held for a moment: its items are put off until its partition is
// read again.
constexpr int kLooks = 3;

}  // namespace

HeldWatch::HeldWatch(Sources sources)
    : sources_(std::move(sources)), thread_([this](const std::stop_token& stop) { Watch(stop); }) {}

std::optional<item::HeldSummary> HeldWatch::found() const {
  base::MutexLock lock(&mu_);
  return found_;
}

void HeldWatch::Watch(const std::stop_token& stop) {
  for (int looks = 0; looks < kLooks;) {
    if (!base::SleepUnlessStopped(sources_.clock, kLookEvery, stop)) return;
    const absl::StatusOr<std::optional<item::HeldSummary>> held = Look();
    if (!held.ok()) {
      base::Log(base::kWarning, "cannot tell whether keys are held",
                {{"why", held.status().ToString()}});
    }
    looks = held.ok() && held->has_value() ? looks + 1 : 0;
    base::MutexLock lock(&mu_);
    if (looks == kLooks) found_ = **held;
  }
  sources_.on_held();
}

// The inputs before the output: a result is put before its item is deleted.
absl::StatusOr<std::optional<item::HeldSummary>> HeldWatch::Look() const {
  item::HeldKeyStore keys(sources_.records);
  MUSTER_ASSIGN_OR_RETURN(const item::HeldSummary held, item::CountHeldKeys(sources_.inputs, keys));
  if (held.keys == 0) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const bool is_put, sources_.is_put());
  if (!is_put) return std::nullopt;
  for (const queue::QueueId& input : sources_.inputs) {
    MUSTER_ASSIGN_OR_RETURN(const queue::QueueStats stats, sources_.queues->Stats(input));
    if (stats.ready + stats.in_flight > 0) return std::nullopt;
  }
  MUSTER_ASSIGN_OR_RETURN(const queue::QueueStats results, sources_.queues->Stats(sources_.output));
  if (results.stored() > 0) return std::nullopt;
  return held;
}

}  // namespace muster::cli
