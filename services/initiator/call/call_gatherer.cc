// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/call/call_gatherer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/retry.h"
#include "muster/rpc/status.h"

namespace muster::initiator::call {
namespace {

constexpr absl::Duration kMinRetry = absl::Milliseconds(20);
constexpr absl::Duration kMaxRetry = absl::Seconds(1);

absl::Status Draining() {
  return absl::UnavailableError(
      "this initiator is about to stop: the record may be counted all the same");
}

absl::Status Cancelled(const ledger::Batch& batch) {
  return rpc::WithReason(absl::CancelledError(absl::StrCat("batch ", batch.number,
                                                           " is cancelled: ", batch.cancel_reason)),
                         {"BATCH_CANCELLED", {}});
}

absl::Status Late(uint64_t batch, const std::string& why) {
  if (batch == 0) {
    return absl::DeadlineExceededError(
        "the record is not durable yet; it may be counted all the same");
  }
  const std::string said =
      absl::StrCat("the record is not counted yet, and will be: it is in batch ", batch);
  return absl::DeadlineExceededError(why.empty() ? said : absl::StrCat(said, ". ", why));
}

size_t BytesOf(const v1::CallRequest& request) { return request.ByteSizeLong(); }

}  // namespace

CallGatherer::CallGatherer(Steps steps, base::Clock* clock, GatherOptions options)
    : steps_(std::move(steps)),
      clock_(clock),
      options_(options),
      explaining_(1),
      reading_(options.reading_threads),
      making_(options.making_threads),
      time_([this] { KeepTime(); }) {}

CallGatherer::~CallGatherer() {
  Drain();
  time_.join();
}

// What has left or expired counts, too, while a thread still has to come to it.
absl::Status CallGatherer::CheckRoomLocked(size_t bytes) const {
  if (draining_) {
    return absl::UnavailableError("this initiator is about to stop: no batch was made");
  }
  const size_t waiting = std::max(calls_.size() + late_, to_make_);
  if (waiting >= options_.max_calls) {
    return absl::ResourceExhaustedError(
        absl::StrCat(waiting, " calls wait already: call again when some are answered"));
  }
  if (bytes_ + bytes > options_.max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes_, " bytes of calls are not durable yet: call again when some are"));
  }
  return absl::OkStatus();
}

uint64_t CallGatherer::Add(v1::CallRequest request, absl::Duration answer_by, Answer answer) {
  const size_t bytes = BytesOf(request);
  absl::Status refused;
  uint64_t number = 0;
  {
    base::MutexLock lock(&mu_);
    number = ++last_call_;
    refused = CheckRoomLocked(bytes);
    if (refused.ok()) {
      const std::string job = request.job();
      const bool is_own = !request.request_id().empty();
      bytes_ += bytes;
      deadlines_.emplace(answer_by, number);
      calls_[number] = {std::make_shared<const v1::CallRequest>(std::move(request)), answer_by,
                        std::move(answer), std::nullopt};
      if (is_own) {
        MakeLocked(job, {number}, /*is_gathered=*/false);
      } else {
        Group& group = groups_[job];
        if (group.calls.empty()) group.begun = clock_->Monotonic();
        group.calls.push_back(number);
        group.bytes += bytes;
        MakeIfDueLocked(job);
      }
      changed_.NotifyOne();
      return number;
    }
  }
  answer(refused);
  return number;
}

bool CallGatherer::Leave(uint64_t call) {
  base::MutexLock lock(&mu_);
  return TakeLocked(call) != nullptr;
}

void CallGatherer::NoteOver(uint64_t batch) {
  base::MutexLock lock(&mu_);
  const auto waited = batches_.find(batch);
  if (waited == batches_.end()) return;
  waited->second.ended = true;
  LookLocked(batch);
}

bool CallGatherer::WaitFor(uint64_t batch) const {
  base::MutexLock lock(&mu_);
  const auto waited = batches_.find(batch);
  return waited != batches_.end() && !waited->second.calls.empty();
}

void CallGatherer::NoteOutcome(uint64_t batch, const v1::BatchOutcome& outcome) {
  std::vector<uint64_t> calls;
  std::shared_ptr<const v1::CallAccepted> bare;
  {
    base::MutexLock lock(&mu_);
    const auto waited = batches_.find(batch);
    if (waited == batches_.end()) return;
    for (const auto& [line, call] : waited->second.calls) calls.push_back(call);
    bare = waited->second.bare;
  }
  v1::CallResponse others;
  *others.mutable_accepted() = VisitOutcomes(
      batch, outcome, *bare, [&](int64_t line, const absl::StatusOr<v1::CallResponse>& of_line) {
        Visit(batch, line, of_line);
      });
  AnswerAll(batch, calls, others);
}

void CallGatherer::Drain() {
  Answers answers;
  {
    base::MutexLock lock(&mu_);
    draining_ = true;
    changed_.NotifyAll();
    for (auto& [number, call] : calls_) answers.emplace_back(std::move(call.answer), Draining());
    calls_.clear();
    deadlines_.clear();
    groups_.clear();
    batches_.clear();
    looks_.clear();
    bytes_ = 0;
  }
  Give(std::move(answers));
}

void CallGatherer::Give(Answers answers) {
  for (auto& [answer, outcome] : answers) answer(std::move(outcome));
}

void CallGatherer::KeepTime() {
  base::MutexLock lock(&mu_);
  while (!draining_) {
    const absl::Duration now = clock_->Monotonic();
    ExpireLocked(now);
    std::vector<std::string> due;
    for (const auto& [job, group] : groups_) {
      if (DueLocked(group) <= now) due.push_back(job);
    }
    for (const std::string& job : due) MakeIfDueLocked(job);
    while (!looks_.empty() && looks_.begin()->first <= now) LookLocked(looks_.begin()->second);
    clock_->WaitUntil(&changed_, &mu_, NextLocked());
  }
}

absl::Duration CallGatherer::NextLocked() const {
  absl::Duration next = absl::InfiniteDuration();
  if (!deadlines_.empty()) next = std::min(next, deadlines_.begin()->first);
  if (!looks_.empty()) next = std::min(next, looks_.begin()->first);
  for (const auto& [job, group] : groups_) next = std::min(next, DueLocked(group));
  return next;
}

void CallGatherer::ExpireLocked(absl::Duration now) {
  // One question for all calls of a batch.
  std::map<uint64_t, std::vector<Answer>> late;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const uint64_t number = deadlines_.begin()->second;
    const uint64_t batch = calls_[number].place.value_or(CallPlace()).batch;
    late[batch].push_back(TakeLocked(number));
  }
  for (auto& [batch, answers] : late) {
    late_ += answers.size();
    explaining_.Add([this, number = batch, waiting = std::move(answers)] {
      const absl::Status status = Late(number, number == 0 ? "" : steps_.why(number));
      for (const Answer& answer : waiting) answer(status);
      base::MutexLock lock(&mu_);
      late_ -= waiting.size();
    });
  }
}

absl::Duration CallGatherer::DueLocked(const Group& group) const {
  if (group.calls.empty()) return absl::InfiniteDuration();
  if (group.bytes >= options_.group_bytes) return group.begun;
  if (group.making > 0) return absl::InfiniteDuration();  // until that is done
  return group.on_way < options_.at_once ? group.begun : group.begun + options_.window;
}

void CallGatherer::MakeIfDueLocked(const std::string& job) {
  const auto group = groups_.find(job);
  if (group == groups_.end() || DueLocked(group->second) > clock_->Monotonic()) return;
  std::vector<uint64_t> calls = std::exchange(group->second.calls, {});
  group->second.bytes = 0;
  ++group->second.making;
  MakeLocked(job, std::move(calls), /*is_gathered=*/true);
}

void CallGatherer::MakeLocked(const std::string& job, std::vector<uint64_t> calls,
                              bool is_gathered) {
  ++to_make_;
  making_.Add(
      [this, job, calls = std::move(calls), is_gathered] { Make(job, calls, is_gathered); });
}

void CallGatherer::Make(const std::string& job, const std::vector<uint64_t>& calls,
                        bool is_gathered) {
  std::vector<uint64_t> numbers;
  std::vector<std::shared_ptr<const v1::CallRequest>> requests;  // also of those that leave
  std::vector<const v1::CallRequest*> records;
  {
    base::MutexLock lock(&mu_);
    --to_make_;
    for (const uint64_t number : calls) {
      const auto call = calls_.find(number);
      if (call == calls_.end()) continue;
      numbers.push_back(number);
      requests.push_back(call->second.request);
      records.push_back(requests.back().get());
    }
  }
  std::vector<absl::StatusOr<CallPlace>> places;
  if (!records.empty()) places = steps_.make(records);
  Answers answers;
  std::set<uint64_t> made;
  {
    base::MutexLock lock(&mu_);
    if (draining_) return;
    if (is_gathered) --groups_[job].making;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto call = calls_.find(numbers[i]);
      if (places[i].ok() && made.insert(places[i]->batch).second) {
        const auto [waited, is_new] = batches_.try_emplace(places[i]->batch);
        if (is_new) {
          waited->second.job = job;
          waited->second.bare = places[i]->bare;
          waited->second.is_gathered = is_gathered;
          if (is_gathered) ++groups_[job].on_way;
          SetLookLocked(places[i]->batch, clock_->Monotonic() + options_.look_interval);
        }
      }
      if (call == calls_.end()) continue;
      if (!places[i].ok()) {
        answers.emplace_back(TakeLocked(numbers[i]), places[i].status());
        continue;
      }
      bytes_ -= BytesOf(*call->second.request);
      call->second.request = nullptr;
      call->second.place = *places[i];
      batches_[places[i]->batch].calls.emplace(places[i]->line, numbers[i]);
    }
    MakeIfDueLocked(job);
    ForgetIfIdleLocked(job);
    changed_.NotifyOne();
  }
  Give(std::move(answers));
  for (const uint64_t batch : made) steps_.advance(batch);
  // One that was there before may be over, and was not waited for then.
  if (!is_gathered) {
    for (const uint64_t batch : made) NoteOver(batch);
  }
}

void CallGatherer::SetLookLocked(uint64_t batch, absl::Duration at) {
  Waited& waited = batches_[batch];
  looks_.erase({waited.look_at, batch});
  waited.look_at = at;
  looks_.emplace(at, batch);
  changed_.NotifyOne();
}

void CallGatherer::LookLocked(uint64_t batch) {
  if (draining_) return;
  Waited& waited = batches_[batch];
  SetLookLocked(batch, clock_->Monotonic() + options_.look_interval);
  if (waited.reading) return;
  waited.reading = true;
  reading_.Add([this, batch] { Look(batch); });
}

void CallGatherer::Look(uint64_t number) {
  std::vector<uint64_t> calls;
  {
    base::MutexLock lock(&mu_);
    const auto waited = batches_.find(number);
    if (waited == batches_.end()) return;
    waited->second.ended = false;
    for (const auto& [line, call] : waited->second.calls) calls.push_back(call);
  }
  const absl::StatusOr<ledger::Batch> batch = steps_.get(number);
  if (absl::IsNotFound(batch.status())) {
    return AnswerAll(number, calls,
                     absl::AbortedError(absl::StrCat(
                         "batch ", number, " was deleted; the record may have been counted")));
  }
  if (!batch.ok()) return LookAgain(number, /*failed=*/true);
  if (batch->state == ledger::BatchState::kCancelled) {
    return AnswerAll(number, calls, Cancelled(*batch));
  }
  if (batch->state != ledger::BatchState::kComplete) return LookAgain(number, /*failed=*/false);
  const absl::StatusOr<v1::CallAccepted> others =
      steps_.read(number, [&](int64_t line, const absl::StatusOr<v1::CallResponse>& outcome) {
        Visit(number, line, outcome);
      });
  if (!others.ok()) return LookAgain(number, /*failed=*/true);
  // A redrive opens the batch in the ledger before the report takes anything back.
  const absl::StatusOr<ledger::Batch> still = steps_.get(number);
  if (!still.ok() || still->state != ledger::BatchState::kComplete) {
    return LookAgain(number, /*failed=*/!still.ok());
  }
  v1::CallResponse accepted;
  *accepted.mutable_accepted() = *others;
  AnswerAll(number, calls, accepted);
}

void CallGatherer::Visit(uint64_t batch, int64_t line,
                         const absl::StatusOr<v1::CallResponse>& outcome) {
  Answers answers;
  {
    base::MutexLock lock(&mu_);
    const auto waited = batches_.find(batch);
    if (waited == batches_.end()) return;
    const auto [from, to] = waited->second.calls.equal_range(line);
    std::vector<uint64_t> calls;
    for (auto call = from; call != to; ++call) calls.push_back(call->second);
    for (const uint64_t call : calls) AnswerLocked(call, outcome, &answers);
  }
  Give(std::move(answers));
}

void CallGatherer::AnswerAll(uint64_t batch, const std::vector<uint64_t>& calls,
                             const absl::StatusOr<v1::CallResponse>& outcome) {
  Answers answers;
  {
    base::MutexLock lock(&mu_);
    const auto waited = batches_.find(batch);
    if (waited == batches_.end()) return;
    for (const uint64_t call : calls) AnswerLocked(call, outcome, &answers);
    waited->second.reading = false;
    if (waited->second.calls.empty()) {
      ForgetLocked(batch);
    } else {
      LookLocked(batch);
    }
  }
  Give(std::move(answers));
}

void CallGatherer::AnswerLocked(uint64_t number, const absl::StatusOr<v1::CallResponse>& outcome,
                                Answers* answers) {
  const auto call = calls_.find(number);
  if (call == calls_.end()) return;
  const CallPlace place = call->second.place.value_or(CallPlace());
  answers->emplace_back(TakeLocked(number), outcome);
  if (!outcome.ok()) return;
  answers->back().second->set_batch(place.batch);
  answers->back().second->set_line(place.line);
}

void CallGatherer::LookAgain(uint64_t batch, bool failed) {
  base::MutexLock lock(&mu_);
  const auto found = batches_.find(batch);
  if (found == batches_.end()) return;
  Waited& waited = found->second;
  waited.reading = false;
  if (waited.calls.empty()) return ForgetLocked(batch);
  waited.failures = failed ? waited.failures + 1 : 0;
  if (!failed && waited.ended) {
    LookLocked(batch);  // it has ended since it was looked at
  } else if (failed) {
    SetLookLocked(batch, clock_->Monotonic() +
                             base::ExponentialBackoff(waited.failures, kMinRetry, kMaxRetry));
  }
}

CallGatherer::Answer CallGatherer::TakeLocked(uint64_t number) {
  const auto call = calls_.find(number);
  if (call == calls_.end()) return nullptr;
  if (call->second.request != nullptr) bytes_ -= BytesOf(*call->second.request);
  deadlines_.erase({call->second.answer_by, number});
  if (call->second.place.has_value()) {
    auto& waits = batches_[call->second.place->batch].calls;
    auto [from, to] = waits.equal_range(call->second.place->line);
    waits.erase(std::find_if(from, to, [&](const auto& wait) { return wait.second == number; }));
  }
  Answer answer = std::move(call->second.answer);
  calls_.erase(call);
  return answer;
}

void CallGatherer::ForgetLocked(uint64_t batch) {
  const auto waited = batches_.find(batch);
  const std::string job = waited->second.job;
  const bool is_gathered = waited->second.is_gathered;
  looks_.erase({waited->second.look_at, batch});
  batches_.erase(waited);
  if (is_gathered) --groups_[job].on_way;
  MakeIfDueLocked(job);
  ForgetIfIdleLocked(job);
}

void CallGatherer::ForgetIfIdleLocked(const std::string& job) {
  const auto group = groups_.find(job);
  if (group == groups_.end()) return;
  const Group& idle = group->second;
  if (idle.calls.empty() && idle.making == 0 && idle.on_way == 0) groups_.erase(group);
}

}  // namespace muster::initiator::call
