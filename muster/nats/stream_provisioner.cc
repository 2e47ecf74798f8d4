// SPDX-License-Identifier: Apache-2.0
#include "muster/nats/stream_provisioner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/nats/connection.h"
#include "muster/nats/status.h"

namespace muster::nats {
namespace {

// Between two writes; doubled each time.
constexpr absl::Duration kFirstWait = absl::Milliseconds(2);

}  // namespace

StreamProvisioner::StreamProvisioner(JetStream* jetstream, nlohmann::json config,
                                     base::Clock* clock)
    : jetstream_(jetstream),
      config_(std::move(config)),
      name_(config_.value("name", "")),
      clock_(clock) {}

absl::Status StreamProvisioner::Ensure() { return jetstream_->EnsureStream(config_); }

absl::Status StreamProvisioner::OnMissing() {
  const absl::Status there = jetstream_->GetStream(name_).status();
  if (there.ok()) {
    base::MutexLock lock(&mu_);
    missing_since_.reset();
    return there;
  }
  if (!absl::IsNotFound(there)) return there;
  if (!NoteMissing()) {
    return absl::UnavailableError(
        absl::StrCat("stream ", name_, " is gone; it is made anew if it stays so"));
  }
  base::Log(base::kWarning, "a stream is gone and is made anew; its messages are lost",
            {{"stream", name_}});
  MUSTER_RETURN_IF_ERROR(Ensure());
  base::MutexLock lock(&mu_);
  missing_since_.reset();
  return absl::OkStatus();
}

// A single observation of long ago says nothing about the time since.
bool StreamProvisioner::NoteMissing() {
  base::MutexLock lock(&mu_);
  const absl::Duration now = clock_->Monotonic();
  if (!missing_since_.has_value() || now - seen_missing_ > kMaxBetweenSightings) {
    missing_since_ = now;
  }
  seen_missing_ = now;
  return now - *missing_since_ >= kGoneFor;
}

absl::Status WriteOnceHeard(const std::function<absl::Status()>& write, absl::Duration patience) {
  for (absl::Duration wait = kFirstWait;; wait *= 2) {
    absl::Status written = write();
    if (!IsNobodyListens(written) || wait > patience / 2) return written;
    base::SleepUnlessStopped(base::RealClock(), wait, {});
  }
}

}  // namespace muster::nats
