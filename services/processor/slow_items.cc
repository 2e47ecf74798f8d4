// SPDX-License-Identifier: Apache-2.0
#include "services/processor/slow_items.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/text.h"

namespace muster::processor {
namespace {

// A command may have long arguments; its beginning names it.
constexpr size_t kMaxHandlerBytes = 120;

// What will become of the call.
std::string FateOf(const ItemTime& time) {
  if (time.deadline == absl::InfiniteDuration()) return "it has no deadline";
  const std::string deadline = absl::FormatDuration(time.deadline);
  // The time of a program that has to be started begins when it takes the item, not with the call.
  if (time.is_ended) {
    return absl::StrCat("it is ended, and charged an attempt, ", deadline,
                        " after the handler takes it");
  }
  return absl::StrCat("its deadline is ", deadline, ", but nothing can end a linked handler");
}

std::string InWords(const SlowItem& item, absl::Duration lapse) {
  return absl::StrCat("item ", item.item, " has been with its handler (", item.handler, ") for ",
                      absl::FormatDuration(absl::Trunc(lapse, absl::Milliseconds(1))), "; ",
                      FateOf(item.time));
}

}  // namespace

ItemTime ItemTimeOf(const job::JobDefinition& job) {
  ItemTime time;
  if (const auto* linked = std::get_if<job::LinkedHandlerSpec>(&job.handler)) {
    time.deadline = linked->deadline.value_or(absl::InfiniteDuration());
  } else if (const auto* grpc = std::get_if<job::GrpcHandlerSpec>(&job.handler)) {
    time.deadline = grpc->deadline;
    time.is_ended = true;
  } else {
    time.deadline = std::get<job::CommandHandlerSpec>(job.handler).deadline;
    time.is_ended = true;
  }
  if (time.deadline != absl::InfiniteDuration()) time.warn_after = time.deadline / 2;
  if (job.sla_max.has_value()) time.warn_after = std::min(time.warn_after, *job.sla_max / 2);
  return time;
}

std::string HandlerInWords(const job::HandlerSpec& handler) {
  std::string words;
  if (const auto* linked = std::get_if<job::LinkedHandlerSpec>(&handler)) {
    words = linked->name;
  } else if (const auto* grpc = std::get_if<job::GrpcHandlerSpec>(&handler)) {
    words = grpc->address;
  } else {
    words = absl::StrJoin(std::get<job::CommandHandlerSpec>(handler).argv, " ");
  }
  return base::Printable(words, kMaxHandlerBytes);
}

SlowItems::SlowItems(base::Clock* clock) : clock_(clock), thread_([this] { Run(); }) {}

SlowItems::~SlowItems() {
  {
    base::MutexLock lock(&mu_);
    MUSTER_CHECK(entries_.empty(), "calls that run: ", entries_.size());
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

SlowItems::Call::Call(SlowItems* items, SlowItem item) : items_(items) {
  if (items_ != nullptr) id_ = items_->Begin(std::move(item));
}

SlowItems::Call::~Call() {
  if (items_ != nullptr) items_->End(id_);
}

uint64_t SlowItems::Begin(SlowItem item) {
  base::MutexLock lock(&mu_);
  const absl::Duration now = clock_->Monotonic();
  const absl::Duration due = now + item.time.warn_after;
  const uint64_t id = ++last_id_;
  entries_.emplace(id, Entry{std::move(item), now, due});
  // A call that ends in time does not wake the thread, which sleeps on until a time without entry.
  if (due < wakes_) {
    wakes_ = due;
    changed_.NotifyAll();
  }
  return id;
}

void SlowItems::End(uint64_t id) {
  base::MutexLock lock(&mu_);
  const auto entry = entries_.find(id);
  MUSTER_CHECK(entry != entries_.end(), "call ", id, " ends twice");
  if (entry->second.item.health != nullptr) entry->second.item.health->EndSlow(id);
  entries_.erase(entry);
}

std::vector<SlowItems::Warning> SlowItems::TakeDueLocked() {
  const absl::Duration now = clock_->Monotonic();
  std::vector<Warning> warnings;
  wakes_ = absl::InfiniteDuration();
  for (auto& [id, entry] : entries_) {
    if (entry.due <= now) {
      const absl::Duration lapse = now - entry.begun;
      entry.due = now + lapse;
      std::string why = InWords(entry.item, lapse);
      // Under the lock: a trouble that is noted after the call has ended would stay for ever.
      if (entry.item.health != nullptr) entry.item.health->NoteSlow(id, why);
      warnings.push_back({entry.item.job, entry.item.item, std::move(why)});
    }
    wakes_ = std::min(wakes_, entry.due);
  }
  return warnings;
}

std::vector<SlowItems::Warning> SlowItems::AwaitDue() {
  base::MutexLock lock(&mu_);
  std::vector<Warning> warnings;
  while (!stopping_ && warnings.empty()) {
    if (wakes_ > clock_->Monotonic()) {
      clock_->WaitUntil(&changed_, &mu_, wakes_);
    } else {
      warnings = TakeDueLocked();
    }
  }
  return warnings;
}

void SlowItems::Run() {
  for (;;) {
    const std::vector<Warning> warnings = AwaitDue();
    if (warnings.empty()) return;
    for (const Warning& warning : warnings) {
      base::Log(base::kWarning, "a handler is slow",
                {{"job", warning.job}, {"item", warning.item}, {"why", warning.why}});
    }
  }
}

}  // namespace muster::processor
