// SPDX-License-Identifier: Apache-2.0
#include "services/controller/result_counter.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "muster/base/check.h"
#include "muster/base/failpoint.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/job/job_file.h"
#include "muster/queue/limits.h"
#include "muster/report/report_proto.h"

namespace muster::controller {

namespace {

// Of the cause of a poison message: enough to tell what is wrong, and where.
constexpr size_t kMaxWhyBytes = 512;

// Of an outcome, which is a part of one message; those who wait for a larger one read the report.
constexpr size_t kMaxOutcomeBytes = size_t{1} << 20;

telemetry::Exemplar ExemplarOf(const std::optional<base::TraceContext>& trace) {
  if (!trace.has_value() || !trace->sampled()) return {};
  return {trace->trace_high, trace->trace_low, trace->parent};
}

size_t OutputBytesOf(const report::CountedItem& item) {
  size_t bytes = 0;
  if (!item.outputs.has_value()) return bytes;
  for (const base::OutputRecord& record : *item.outputs) bytes += base::OutputBytes(record.fields);
  return bytes;
}

}  // namespace

ResultCounter::ResultCounter(queue::QueueId partition, const Options& options, const Events* events,
                             Dependencies dependencies, std::stop_token stop)
    : partition_(std::move(partition)),
      options_(options),
      deps_(dependencies),
      stop_(std::move(stop)),
      retry_({}, dependencies.clock),
      ledger_cache_(dependencies.ledger, dependencies.report),
      completer_(dependencies, events, &ledger_cache_, stop_),
      metrics_(dependencies.metrics),
      spans_(dependencies.spans, dependencies.clock, partition_),
      away_(options.unknown_batch_grace, dependencies.clock),
      redelivery_(partition_, options.visibility, &away_, dependencies.queues, dependencies.clock) {
}

absl::Status ResultCounter::Receive() {
  const int page = deps_.queues->traits().max_receive;
  const absl::Time began = spans_.Now();
  while (!full() && redelivery_.pending() < static_cast<size_t>(options_.max_commit_results)) {
    MUSTER_ASSIGN_OR_RETURN(std::vector<queue::Message> messages, Retrying([&] {
                              return deps_.queues->Receive(partition_, {page, options_.visibility});
                            }));
    const bool is_last = static_cast<int>(messages.size()) < page;
    MUSTER_RETURN_IF_ERROR(TakeAll(std::move(messages)));
    if (is_last) break;
  }
  spans_.RecordReceive(began);
  redelivery_.Send();
  return absl::OkStatus();
}

absl::Status ResultCounter::TakeAll(std::vector<queue::Message> messages) {
  std::vector<absl::StatusOr<item::DecodedResults>> decoded;
  std::set<uint64_t> batches;
  for (const queue::Message& message : messages) {
    decoded.push_back(Retrying([&] { return item::DecodeResults(message.body, deps_.blobs); }));
    const absl::Status& read = decoded.back().status();
    if (base::IsTransient(read) || absl::IsCancelled(read)) return read;
    if (!read.ok()) continue;
    for (const absl::StatusOr<item::DecodedResult>& result : *decoded.back()) {
      if (result.ok() && away_.MayAsk(result->item.batch).ok()) batches.insert(result->item.batch);
    }
  }
  for (const auto& [batch, why] : ledger_cache_.Prepare(batches)) {
    if (base::IsTransient(why)) NoteAway(batch, why).IgnoreError();
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(Take(std::move(messages[i]), std::move(decoded[i])));
  }
  return absl::OkStatus();
}

absl::Status ResultCounter::Take(queue::Message message,
                                 absl::StatusOr<item::DecodedResults> decoded) {
  const absl::Status& read = decoded.status();
  if (!read.ok()) {
    redelivery_.LeaveUntilLapse("results wait until their blob can be read", read);
    return absl::OkStatus();
  }
  item::DecodedResults& results = *decoded;
  bool for_newer = false;
  for (absl::StatusOr<item::DecodedResult>& result : results) {
    for_newer = for_newer || absl::IsUnimplemented(result.status());
    if (!result.ok()) continue;
    const absl::Status fits = Check(result->item);
    // The initiator with the batch's ledger is away: count the results of other batches meanwhile.
    if (base::IsTransient(fits)) {
      redelivery_.ComeLater(result->item.batch, std::move(message));
      return absl::OkStatus();
    }
    if (!fits.ok() && !absl::IsInvalidArgument(fits)) return fits;  // a store does not answer
    if (!fits.ok()) result = fits;
  }
  if (for_newer) {
    // The poison queue would lose its results.
    redelivery_.LeaveUntilLapse("results wait for a newer controller", item::FirstError(results));
  } else {
    Keep(std::move(results), std::move(message));
  }
  return absl::OkStatus();
}

void ResultCounter::Keep(item::DecodedResults results, queue::Message message) {
  absl::Status hopeless;
  std::vector<std::string> blobs;
  for (absl::StatusOr<item::DecodedResult>& result : results) {
    if (!result.ok()) {
      hopeless.Update(result.status());
      continue;
    }
    ++items_of_batch_[result->item.batch];
    spans_.NoteResult(result->item.batch, result->trace);
    output_bytes_ += OutputBytesOf(result->item);
    items_.push_back(std::move(result->item));
    origins_.push_back({result->put, ExemplarOf(result->trace), message.dequeue_count > 1});
    if (!result->blob.empty()) blobs.push_back(std::move(result->blob));
  }
  if (hopeless.ok()) {
    receipts_.push_back(std::move(message.receipt));
    blobs_.push_back(std::move(blobs));
    return;
  }
  // It quotes the message.
  std::string why = base::Printable(hopeless.message(), kMaxWhyBytes);
  base::Log(base::kError, "a result cannot be counted",
            {{"queue", partition_.ToString()}, {"message", message.message_id}, {"why", why}});
  hopeless_.push_back({std::move(message.receipt),
                       {std::move(why), message.attempts, options_.instance, deps_.clock->Now()},
                       queue::DeadLetterKind::kResult});
}

absl::Status ResultCounter::Check(const report::CountedItem& item) {
  MUSTER_RETURN_IF_ERROR(away_.MayAsk(item.batch));
  const absl::Status fits = ledger_cache_.Check(item);
  if (!base::IsTransient(fits)) {
    away_.NoteThere(item.batch);
    return fits;
  }
  return NoteAway(item.batch, fits);
}

absl::Status ResultCounter::NoteAway(uint64_t batch, const absl::Status& why) {
  absl::Status away = away_.NoteAway(batch, why);
  if (base::IsTransient(away) && !away_.IsUsual(batch)) {
    base::Log(
        base::kWarning, "results wait for the ledger of their batch",
        {{"batch", batch}, {"why", away.ToString(absl::StatusToStringMode::kWithNoExtraData)}});
  }
  return away;
}

absl::StatusOr<bool> ResultCounter::HoldsTheLast() {
  for (const auto& [batch, items] : items_of_batch_) {
    const absl::StatusOr<bool> last = ledger_cache_.WouldComplete(batch, items);
    if (base::IsTransient(last.status()))
      continue;  // the ledger is away: the linger ends the wait instead
    MUSTER_RETURN_IF_ERROR(last.status());
    if (*last) return true;
  }
  return false;
}

absl::Status ResultCounter::Count() {
  if (!items_.empty()) {
    const absl::Status committed = Commit();
    if (absl::IsNotFound(committed) && ForgetGone()) {
      base::Log(base::kWarning, "results are looked at again: a batch of theirs was deleted",
                {{"queue", partition_.ToString()}, {"why", committed.ToString()}});
      GiveBack(committed);
      return absl::OkStatus();
    }
    // Who counts next would find them only after their leases, and after a safety check.
    if (base::IsTransient(committed)) GiveBack(committed);
    MUSTER_RETURN_IF_ERROR(committed);
  }
  MUSTER_FAILPOINT("controller.before_delete");
  const absl::Time began = spans_.Now();
  const absl::Status settled = Settle();
  spans_.RecordSettle(began, settled);
  MUSTER_RETURN_IF_ERROR(settled);
  EmptyHand();
  return absl::OkStatus();
}

void ResultCounter::EmptyHand() {
  receipts_.clear();
  items_.clear();
  output_bytes_ = 0;
  origins_.clear();
  blobs_.clear();
  items_of_batch_.clear();
  hopeless_.clear();
}

bool ResultCounter::ForgetGone() {
  bool any = false;
  for (const auto& [batch, items] : items_of_batch_) {
    if (!absl::IsNotFound(completer_.GetProgress(batch).status())) continue;
    ledger_cache_.Forget(batch);
    any = true;
  }
  return any;
}

void ResultCounter::GiveBack(const absl::Status& why) {
  for (queue::Receipt& receipt : receipts_) redelivery_.ComeAtOnce(std::move(receipt));
  for (queue::DeadLetterRequest& request : hopeless_) {
    redelivery_.ComeAtOnce(std::move(request.receipt));
  }
  const absl::Time began = spans_.Now();
  redelivery_.Send();
  spans_.RecordSettle(began, why);
  EmptyHand();
}

absl::Status ResultCounter::Commit() {
  MUSTER_FAILPOINT("controller.before_commit");
  // Controller::Create bounds the hand so that the report takes it in one transaction.
  MUSTER_CHECK(items_.size() <= report::kMaxCommitItems, "results ", items_.size(), ", at most ",
               report::kMaxCommitItems);
  report::CommitRequest request{partition_.ToString(), deps_.report->epoch(), std::move(items_)};
  const absl::Time began = spans_.Now();
  const absl::StatusOr<report::CommitSummary> summary =
      Retrying([&] { return deps_.report->Commit(request); });
  spans_.RecordCommit(began, summary.status());
  items_ = std::move(request.items);
  MUSTER_RETURN_IF_ERROR(summary.status());
  MUSTER_FAILPOINT("controller.after_commit");
  LogVerdicts(*summary);
  metrics_.Record(items_, origins_, *summary, deps_.clock->Now());
  // What stands in the way of a batch, its initiator hears when it asks again.
  return completer_
      .FinishCounted(summary->progress,
                     [&](const ledger::Batch& batch) { return OutcomeInHand(batch, *summary); })
      .status();
}

void ResultCounter::LogVerdicts(const report::CommitSummary& summary) const {
  for (size_t i = 0; i < summary.verdicts.size(); ++i) {
    const report::ItemVerdict& verdict = summary.verdicts[i];
    const std::string item = absl::StrCat(items_[i].batch, "/", items_[i].index);
    if (verdict.verdict == report::Verdict::kRefused) {
      base::Log(base::kWarning, "a result does not fit the report and is dead-lettered",
                {{"item", item}, {"why", verdict.why}});
    } else if (verdict.verdict == report::Verdict::kConflict) {
      base::Log(base::kError, "two results of one item contradict each other",
                {{"item", item}, {"why", verdict.why}});
    }
  }
}

absl::Status ResultCounter::Settle() {
  MUSTER_CHECK(receipts_.size() == blobs_.size(), "receipts ", receipts_.size(), ", blobs of ",
               blobs_.size());
  const absl::Span<const queue::Receipt> receipts = receipts_;
  for (size_t first = 0; first < receipts.size(); first += queue::kMaxSettle) {
    // A stale receipt means that the message is delivered again; its results are then duplicates.
    const auto deleted = Retrying([&] {
      return deps_.queues->Delete(partition_, receipts.subspan(first, queue::kMaxSettle));
    });
    MUSTER_RETURN_IF_ERROR(deleted.status());
    MUSTER_FAILPOINT("controller.after_delete");
    for (size_t i = 0; i < deleted->size(); ++i) {
      if (!(*deleted)[i].ok()) continue;
      // A blob that stays only costs space; one that goes before its message would cost results.
      for (const std::string& blob : blobs_[first + i]) {
        base::LogUnlessOk(base::kWarning, "a blob stays behind", deps_.blobs->Delete(blob),
                          {{"blob", blob}});
      }
    }
  }
  const absl::Span<const queue::DeadLetterRequest> hopeless = hopeless_;
  for (size_t first = 0; first < hopeless.size(); first += queue::kMaxSettle) {
    const auto buried = Retrying([&] {
      return deps_.queues->DeadLetter(partition_, hopeless.subspan(first, queue::kMaxSettle));
    });
    MUSTER_RETURN_IF_ERROR(buried.status());
  }
  return absl::OkStatus();
}

std::optional<ledger::BatchOutcome> ResultCounter::OutcomeInHand(
    const ledger::Batch& batch, const report::CommitSummary& summary) const {
  const auto held = items_of_batch_.find(batch.number);
  if (held == items_of_batch_.end() || held->second != batch.items) return std::nullopt;
  std::map<uint64_t, const report::CountedItem*> items;  // by index
  size_t bytes = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    const report::CountedItem& item = items_[i];
    if (item.batch != batch.number) continue;
    const bool is_counted = summary.verdicts[i].verdict == report::Verdict::kCounted;
    if (!is_counted || item.outcome != report::ItemOutcome::kAggregated) return std::nullopt;
    bytes += OutputBytesOf(item);
    for (const report::Rejection& rejection : item.rejections) {
      bytes += rejection.reason.size() + sizeof(rejection);
    }
    items[item.index] = &item;
  }
  if (bytes > kMaxOutcomeBytes) return std::nullopt;
  ledger::BatchOutcome outcome;
  for (const auto& [index, item] : items) {
    for (const report::Rejection& rejection : item->rejections) {
      outcome.rejections.push_back({rejection.line, rejection.reason});
    }
    if (!item->outputs.has_value()) continue;
    outcome.records.insert(outcome.records.end(), item->outputs->begin(), item->outputs->end());
  }
  return outcome;
}

}  // namespace muster::controller
