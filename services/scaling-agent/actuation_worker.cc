// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/actuation_worker.h"

#include <algorithm>
#include <utility>

#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {
namespace {

using actuator::Order;
using actuator::Outcome;

bool AsksTheSame(const Order& a, const Order& b) {
  return a.replicas == b.replicas && a.tasks == b.tasks;
}

}  // namespace

ActuationWorker::ActuationWorker(std::string target, actuator::Actuator* actuator, Token token,
                                 OnAnswer on_answer, base::Clock* clock)
    : target_(std::move(target)),
      actuator_(actuator),
      token_(std::move(token)),
      on_answer_(std::move(on_answer)),
      clock_(clock) {}

bool ActuationWorker::NeedsLocked(const Order& order) const {
  const bool is_done = done_.has_value() && AsksTheSame(*done_, order);
  if (is_dry()) return !is_done;
  if (!view_.was_seen) return !is_done;
  if (view_.state.wanted != order.replicas) return true;
  return order.tasks != 0 && !is_done;
}

bool ActuationWorker::Needs(const Order& order) const {
  base::MutexLock lock(&mu_);
  return NeedsLocked(order);
}

void ActuationWorker::Want(Order order) {
  MUSTER_CHECK(order.target == target_ && order.replicas >= 0 && order.tasks >= 0, "order ",
               order.decision, " for ", order.target, ", replicas ", order.replicas, ", tasks ",
               order.tasks, "; this worker is of ", target_);
  std::optional<Order> replaced;
  {
    base::MutexLock lock(&mu_);
    const bool is_new = !wanted_.has_value() || wanted_->decision != order.decision;
    if (is_new && wanted_.has_value() && !was_given_ && NeedsLocked(*wanted_)) replaced = wanted_;
    if (is_new) was_given_ = false;
    // A repeated order waits for its pause; a new order is due at once, unless an order just
    // failed.
    if (is_new && pause_ == absl::ZeroDuration()) not_before_ = -absl::InfiniteDuration();
    wanted_ = std::move(order);
  }
  if (replaced.has_value()) {
    on_answer_(replaced->decision, absl::AbortedError("another decision came before it was given"));
  }
}

void ActuationWorker::Rest() {
  base::MutexLock lock(&mu_);
  wanted_.reset();
  done_.reset();
  pause_ = absl::ZeroDuration();
  not_before_ = -absl::InfiniteDuration();
  ordered_ = absl::OkStatus();
}

void ActuationWorker::Step() {
  if (std::optional<Order> order = TakeDue()) Give(*std::move(order));
  Look();
}

// Limited in time, because the trouble may disappear without a change that the platform shows.
bool ActuationWorker::IsInVainLocked(const Order& order) const {
  return done_.has_value() && done_->decision == order.decision && AsksTheSame(*done_, order) &&
         view_.state.wanted == reached_ && clock_->Monotonic() - done_at_ < kUnmetOrderPause;
}

std::optional<Order> ActuationWorker::TakeDue() {
  base::MutexLock lock(&mu_);
  if (!wanted_.has_value() || clock_->Monotonic() < not_before_ || !NeedsLocked(*wanted_) ||
      IsInVainLocked(*wanted_)) {
    return std::nullopt;
  }
  was_given_ = true;
  return wanted_;
}

void ActuationWorker::Give(Order order) {
  // Another agent may lead by now, or before the actuator carries out the order, and may have
  // ordered something else: check the token, and let the order expire with the lease.
  const std::optional<HeldToken> held = token_();
  const bool leads = held.has_value() && held->token == order.fencing_token;
  if (leads) order.not_after = held->until;
  const absl::StatusOr<Outcome> outcome =
      leads ? actuator_->Apply(order)
            : absl::AbortedError("this agent does not lead any more: it was not given");
  {
    base::MutexLock lock(&mu_);
    const absl::Duration now = clock_->Monotonic();
    ordered_ = leads ? outcome.status() : absl::OkStatus();
    if (outcome.ok()) {
      done_ = order;
      reached_ = outcome->after;
      done_at_ = now;
      view_.ordered = clock_->Now();
      pause_ = absl::ZeroDuration();
      not_before_ = now + kLookPeriod;
      if (view_.was_seen && !is_dry()) view_.state.wanted = outcome->after;
    } else {
      pause_ = std::clamp(2 * pause_, kFirstOrderPause, kMaxOrderPause);
      not_before_ = now + pause_;
    }
  }
  base::LogUnlessOk(
      base::kWarning, "an order was not carried out", outcome.status(),
      {{"target", order.target}, {"decision", order.decision}, {"replicas", order.replicas}});
  on_answer_(order.decision, outcome);
}

void ActuationWorker::Look() {
  absl::StatusOr<actuator::TargetState> state = actuator_->Observe(target_);
  base::MutexLock lock(&mu_);
  looked_ = state.status();
  if (!state.ok()) return;
  view_.state = *std::move(state);
  view_.was_seen = true;
  seen_at_ = clock_->Monotonic();
}

TargetView ActuationWorker::view() const {
  base::MutexLock lock(&mu_);
  TargetView view = view_;
  view.is_fresh = clock_->Monotonic() - seen_at_ <= kTargetStateLifetime;
  view.trouble = base::Annotate(ordered_, "the actuator refused an order");
  if (!looked_.ok()) view.trouble = base::Annotate(looked_, "the actuator shows nothing");
  if (view.trouble.ok() && view.was_seen && !view.is_fresh) {
    view.trouble = absl::UnavailableError("the actuator does not answer");
  }
  if (view.trouble.ok() && !view.state.trouble.empty()) {
    view.trouble = absl::UnavailableError(view.state.trouble);
  }
  return view;
}

}  // namespace muster::scaling_agent
