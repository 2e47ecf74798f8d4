// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/delivery_batch.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/listener/store_results.h"

namespace muster::listener {
namespace {

// The least max_attempts for which attempts begin together. With fewer, a death that charges no
// message weighs too much, so each message is charged alone, and exactly.
constexpr int kFewestToBeginTogether = 3;

}  // namespace

DeliveryBatch::DeliveryBatch(const TaskEnvironment& environment, std::vector<LeasePtr> leases,
                             base::UniformSource uniform, absl::Duration asked_at,
                             absl::Duration received_at)
    : environment_(environment),
      asked_at_(asked_at),
      received_at_(received_at),
      uniform_(std::move(uniform)),
      uniform_for_others_(uniform_()) {
  slots_.resize(leases.size());
  for (size_t i = 0; i < leases.size(); ++i) {
    slots_[i].attempts = leases[i]->message.attempts;
    if (environment.leases->charged(*leases[i])) {  // by an earlier delivery, which was refunded it
      slots_[i].charge = absl::OkStatus();
      ++slots_[i].attempts;
    }
    slots_[i].lease = std::move(leases[i]);
  }
}

void DeliveryBatch::Run(Subscriber& subscriber) {
  std::vector<Delivery> deliveries = TakeDeliverable();
  ConcludeGivenUp(subscriber);
  std::string failure;
  if (!deliveries.empty()) failure = RunGuarded(subscriber, absl::MakeSpan(deliveries));
  SettleLeftovers(failure);
  ConcludeGivenUp(subscriber);
  CheckAllSettled();
}

void DeliveryBatch::CheckAllSettled() {
  base::MutexLock lock(&mu_);
  for (const Slot& slot : slots_) {
    MUSTER_DCHECK(slot.settled && !slot.given_up.has_value(), "message ",
                  slot.lease->message.message_id, ": settled ", slot.settled, ", given up ",
                  slot.given_up.has_value());
  }
}

std::vector<Delivery> DeliveryBatch::TakeDeliverable() {
  std::vector<Delivery> deliveries;
  base::MutexLock lock(&mu_);
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    const queue::Message& message = slot.lease->message;
    if (IsSpent(message, environment_.rules)) {
      slot.settled = true;
      if (environment_.leases->StartSettling(*slot.lease)) slot.given_up = JudgeSpent(message);
      continue;
    }
    deliveries.push_back({&message, &environment_.options->partitions[slot.lease->partition], i,
                          message.attempts + 1,
                          message.attempts + 1 >= environment_.rules.max_attempts, asked_at_,
                          received_at_});
  }
  return deliveries;
}

std::string DeliveryBatch::RunGuarded(Subscriber& subscriber, absl::Span<Delivery> deliveries) {
  try {
    subscriber.OnMessages(deliveries, *this);
    return "";
  } catch (const std::exception& error) {
    return absl::StrCat("the handler threw: ", error.what());
  } catch (...) {
    return "the handler threw something that is no std::exception";
  }
}

bool DeliveryBatch::Slot::unsure() const {
  return charge.has_value() && !charge->ok() && !absl::IsFailedPrecondition(*charge) &&
         !absl::IsCancelled(*charge);
}

absl::Status DeliveryBatch::Begin(Delivery& delivery) {
  {
    base::MutexLock charging(&charging_mu_);
    if (!IsCharged(delivery.slot)) ChargeFrom(delivery.slot);
  }
  base::MutexLock lock(&mu_);
  Slot& slot = slots_[delivery.slot];
  MUSTER_CHECK(slot.charge.has_value(), "message ", slot.lease->message.message_id,
               " begins, and was not charged");
  MUSTER_RETURN_IF_ERROR(*slot.charge);
  MUSTER_RETURN_IF_ERROR(environment_.leases->Begin(*slot.lease));
  if (!slot.begun) {
    environment_.counters->Add(&ListenerCounters::attempts);
    slot.begun_at = environment_.clock->Monotonic();
  }
  slot.begun = true;
  delivery.attempt = slot.attempts;
  delivery.last_attempt = slot.attempts >= environment_.rules.max_attempts;
  return absl::OkStatus();
}

int DeliveryBatch::left_to_others() const {
  base::MutexLock lock(&mu_);
  return left_to_others_;
}

bool DeliveryBatch::IsCharged(size_t slot) {
  base::MutexLock lock(&mu_);
  return slots_.at(slot).charge.has_value();
}

// Retried only when throttled: after a lost answer the attempt may already be charged, and one
// start must never be charged twice.
void DeliveryBatch::ChargeFrom(size_t slot) {
  const Together together = PinTogether(slot);
  if (together.slots.empty()) return;
  const queue::QueueId& queue =
      environment_.options->partitions[together.leases.front()->partition];
  const auto begin = [&] {
    environment_.counters->Add(&ListenerCounters::begins);
    return environment_.store->BeginAttempt(queue, together.receipts);
  };
  const auto charged = CheckSize(
      environment_.retry->RunWhileThrottled(environment_.stopping, begin), together.slots.size());
  for (size_t i = 0; i < together.slots.size(); ++i) {
    const absl::StatusOr<int> attempts = charged.ok() ? (*charged)[i] : charged.status();
    absl::Status charge = NoteCharge(*together.leases[i], attempts);
    base::MutexLock lock(&mu_);
    Slot& with = slots_[together.slots[i]];
    with.charge = std::move(charge);
    if (attempts.ok()) with.attempts = *attempts;
  }
}

DeliveryBatch::Together DeliveryBatch::PinTogether(size_t slot) {
  Together together;
  for (std::optional<size_t> next = slot; next.has_value();) {
    LeasePtr lease;
    {
      base::MutexLock lock(&mu_);
      lease = slots_[*next].lease;
    }
    absl::StatusOr<queue::Receipt> receipt = environment_.leases->PinForCharge(*lease);
    base::MutexLock lock(&mu_);
    if (receipt.ok()) {
      together.slots.push_back(*next);
      together.leases.push_back(std::move(lease));
      together.receipts.push_back(*std::move(receipt));
    } else {
      slots_[*next].charge = receipt.status();
    }
    next = NextFirstLocked(slot, *next);
  }
  return together;
}

std::optional<size_t> DeliveryBatch::NextFirstLocked(size_t slot, size_t after) const {
  const auto is_first = [](const Slot& s) {
    return s.lease->message.attempts == 0 && !s.lease->message.interrupted;
  };
  if (!environment_.store->traits().begins_together || !is_first(slots_[slot])) return std::nullopt;
  if (environment_.rules.max_attempts < kFewestToBeginTogether) return std::nullopt;
  for (size_t i = after + 1; i < slots_.size(); ++i) {
    if (is_first(slots_[i]) && !slots_[i].settled && !slots_[i].charge.has_value()) return i;
  }
  return std::nullopt;
}

absl::Status DeliveryBatch::NoteCharge(Lease& lease, const absl::StatusOr<int>& attempts) {
  LeaseTable& leases = *environment_.leases;
  if (IsStale(attempts.status())) {
    leases.Lost(lease);
    return absl::FailedPreconditionError(attempts.status().message());
  }
  leases.Unpin(lease, attempts.ok());
  if (!attempts.ok()) {
    environment_.on_error(base::Annotate(
        attempts.status(), absl::StrCat("beginning on message ", lease.message.message_id)));
  }
  return attempts.status();
}

void DeliveryBatch::Settle(const Delivery& delivery, Settlement settlement) {
  std::optional<Settler::Item> item;
  {
    base::MutexLock lock(&mu_);
    Slot& slot = slots_.at(delivery.slot);
    if (slot.begun && !slot.settled) {
      environment_.meter->Served(environment_.clock->Monotonic() - slot.begun_at);
    }
    item = JudgeLocked(slot, std::move(settlement));
  }
  if (!item) return;
  std::vector<Settler::Item> items;
  items.push_back(*std::move(item));
  PassOn(std::move(items));
}

void DeliveryBatch::PassOn(std::vector<Settler::Item> items) {
  if (environment_.keep) environment_.keep(&items);
  if (!items.empty()) environment_.settler->Settle(std::move(items));
}

std::optional<Settler::Item> DeliveryBatch::JudgeLocked(Slot& slot, Settlement settlement) {
  if (std::exchange(slot.settled, true)) return std::nullopt;
  if (!environment_.leases->StartSettling(*slot.lease)) return std::nullopt;
  if (settlement.kind == Settlement::Kind::kDefer && !settlement.wanted.empty()) {
    ++left_to_others_;
    // Those that came together come again together.
    const absl::Duration spaced = environment_.away->Next();
    if (!away_.has_value()) away_ = spaced;
    settlement.delay =
        std::max(*away_, DelayForOthers(slot.lease->message.dequeue_count, uniform_for_others_));
  }
  auto on_settled = std::move(settlement.on_settled);
  Verdict verdict = Judge(std::move(settlement), slot.attempts, slot.begun || slot.unsure(),
                          environment_.rules, uniform_());
  if (slot.charged() && !slot.begun) verdict = Refunded(std::move(verdict));
  verdict.on_settled = std::move(on_settled);
  if (verdict.action == Verdict::Action::kDeadLetter) {
    slot.given_up = std::move(verdict);
    return std::nullopt;
  }
  return Settler::Item{slot.lease, std::move(verdict), slot.attempts};
}

void DeliveryBatch::SettleLeftovers(const std::string& failure) {
  std::vector<Settler::Item> items;
  {
    base::MutexLock lock(&mu_);
    for (Slot& slot : slots_) {
      if (slot.settled) continue;
      if (auto item = JudgeLocked(slot, LeftoverSettlement(slot, failure))) {
        items.push_back(*std::move(item));
      }
    }
  }
  if (!items.empty()) PassOn(std::move(items));
}

Settlement DeliveryBatch::LeftoverSettlement(const Slot& slot, const std::string& failure) const {
  Settlement settlement;
  settlement.why = failure;
  if (slot.unsure()) {
    settlement.kind = Settlement::Kind::kDefer;
  } else if (failure.empty() && environment_.stopping.stop_requested()) {
    settlement.kind = Settlement::Kind::kRelease;
  }
  return settlement;
}

void DeliveryBatch::ConcludeGivenUp(Subscriber& subscriber) {
  std::vector<Settler::Item> items;
  {
    base::MutexLock lock(&mu_);
    for (Slot& slot : slots_) {
      if (!slot.given_up) continue;
      items.push_back({slot.lease, *std::exchange(slot.given_up, std::nullopt), slot.attempts});
    }
  }
  if (items.empty()) return;
  for (Settler::Item& item : items) AskForOutputs(subscriber, item);
  PassOn(std::move(items));
}

void DeliveryBatch::AskForOutputs(Subscriber& subscriber, Settler::Item& item) {
  if (environment_.leases->lost(*item.lease)) return;
  const queue::Cause cause{.reason = item.verdict.why,
                           .attempts = item.attempts,
                           .holder = environment_.options->instance,
                           .time = environment_.clock->Now()};
  absl::Status status;
  try {
    item.verdict.outputs = subscriber.OnGivenUp(item.lease->message, cause);
    status = CheckOutputs(item.verdict.outputs, environment_.rules);
  } catch (const std::exception& error) {
    status = absl::InternalError(error.what());
  } catch (...) {
    status = absl::InternalError("it threw something that is no std::exception");
  }
  if (status.ok()) return;
  // Give the message back: setting it aside now would hide it from the counting of results. It
  // comes back, is found spent or fails again, and the subscriber is asked once more.
  environment_.on_error(
      base::Annotate(status, absl::StrCat("giving up message ", item.lease->message.message_id,
                                          " (", item.verdict.why, ")")));
  item.verdict = JudgePostponed(environment_.leases->charged(*item.lease), environment_.rules);
}

std::stop_token DeliveryBatch::stop_token(const Delivery& delivery) {
  LeasePtr lease;
  {
    base::MutexLock lock(&mu_);
    lease = slots_.at(delivery.slot).lease;
  }
  return environment_.leases->TokenOf(*lease);
}

std::stop_token DeliveryBatch::stop_token() const { return environment_.stopping; }

}  // namespace muster::listener
