// SPDX-License-Identifier: Apache-2.0

// ServingState: whether a gateway can serve, as it changes; what /readyz answers.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "muster/base/mutex.h"

namespace muster::queue_gateway {

// Thread-safe.
class ServingState {
 public:
  // `on_failure` is called once, from any thread: be quick.
  explicit ServingState(std::function<void()> on_failure) : on_failure_(std::move(on_failure)) {}

  // The stores are open, and requests are answered.
  void Open() ABSL_LOCKS_EXCLUDED(mu_);
  // Of the connection to the NATS server; without one it counts as there.
  void Connected(bool connected) ABSL_LOCKS_EXCLUDED(mu_);
  // No new request is taken; final.
  void Drain() ABSL_LOCKS_EXCLUDED(mu_);
  // The stores take nothing more until they are opened again, but can be read. The first reason
  // counts.
  void OnlyRead(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  // Requested once they only read.
  std::stop_token only_reads() const { return only_reads_.get_token(); }
  // Only a new process can serve. The first failure counts.
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  bool is_ready() const ABSL_LOCKS_EXCLUDED(mu_);
  // "ready", or in a few words why not.
  std::string InWords() const ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<absl::Status> failure() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::function<void()> on_failure_;
  std::stop_source only_reads_;  // thread-safe by itself
  mutable base::Mutex mu_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  bool connected_ ABSL_GUARDED_BY(mu_) = true;  // the first connection is part of opening
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::queue_gateway
