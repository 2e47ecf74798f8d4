// SPDX-License-Identifier: Apache-2.0
#include "services/processor/item_worker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/failpoint.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/item/batch_trace.h"
#include "muster/item/result_codec.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/limits.h"

namespace muster::processor {
namespace {

using listener::Settlement;

// The most bytes of the text that names what an item needs: it goes to all processors each time the
// item is put back.
constexpr size_t kMaxWantedBytes = 256;
// What an item needs that only newer processors can read. No processor reports having it.
constexpr char kNewerMuster[] = "a newer muster";

// How long an item waits for a store or a handler that is not there.
constexpr absl::Duration kPutOffFor = absl::Seconds(1);

Settlement Settle(Settlement::Kind kind, absl::Duration delay, std::string why) {
  Settlement settlement;
  settlement.kind = kind;
  settlement.delay = delay;
  settlement.why = std::move(why);
  return settlement;
}

Settlement Publish(std::string result) {
  Settlement settlement;
  settlement.kind = Settlement::Kind::kOk;
  queue::NewMessage message;
  message.body = std::move(result);
  // A result must not vanish before the controller has counted it, however long that takes.
  message.ttl = queue::kNeverExpires;
  settlement.outputs.push_back(std::move(message));
  return settlement;
}

Settlement Dead(const absl::Status& why) {
  return Settle(Settlement::Kind::kDead, absl::ZeroDuration(), std::string(why.message()));
}

// What a store did not do, or a handler that cannot be made, is no item's fault; only what is
// refused for what it is counts against the item, since it would be refused for ever.
Settlement PutOff(const absl::Status& why) {
  const bool is_refused = absl::IsInvalidArgument(why) || absl::IsOutOfRange(why);
  return Settle(is_refused ? Settlement::Kind::kRetry : Settlement::Kind::kDefer,
                is_refused ? absl::ZeroDuration() : kPutOffFor, why.ToString());
}

// Settles an item without a result.
Settlement Unrun() { return Settle(Settlement::Kind::kOk, absl::ZeroDuration(), ""); }

// Converts every outcome but kOk, which needs the results.
Settlement SettlementOf(handler::Outcome outcome) {
  switch (outcome.kind) {
    case handler::Outcome::Kind::kDefer:
      return Settle(Settlement::Kind::kDefer, outcome.delay, std::move(outcome.why));
    case handler::Outcome::Kind::kDead:
      return Settle(Settlement::Kind::kDead, outcome.delay, std::move(outcome.why));
    case handler::Outcome::Kind::kRelease:
      return Settle(Settlement::Kind::kRelease, outcome.delay, std::move(outcome.why));
    case handler::Outcome::Kind::kUnset:
    case handler::Outcome::Kind::kOk:
    case handler::Outcome::Kind::kRetry:
    case handler::Outcome::Kind::kUnfit:
      break;
  }
  return Settle(Settlement::Kind::kRetry, outcome.delay, std::move(outcome.why));
}

// Names what any worker must have for the items of a batch.
std::string WantedBy(const item::BatchIdentity& identity) {
  return base::Printable(absl::StrCat("job ", identity.job, " revision ", identity.job_revision,
                                      " handler version ", identity.handler_version),
                         kMaxWantedBytes);
}

content::ItemReference ReferenceOf(const item::WorkItem& item) {
  return {item.identity.batch, item.index, item.identity.owner, item.slice_bytes, item.content};
}

// The records of an item in order do not follow one another in the input.
void SetLines(const std::vector<int64_t>& lines, input::ParsedRecords* records) {
  for (input::RecordPosition& record : records->records) {
    record.line = lines.at(static_cast<size_t>(record.ordinal));
  }
  for (input::RejectedRecord& record : records->rejected) {
    record.line = lines.at(static_cast<size_t>(record.ordinal));
  }
}

// Merges the rejections of the parser and of the handler, ordered by line.
std::vector<handler::Rejection> MergeRejections(const input::ParsedRecords& records,
                                                const handler::Results& results) {
  std::vector<handler::Rejection> merged = results.rejections();
  for (const input::RejectedRecord& record : records.rejected) {
    merged.push_back({record.line, record.reason});
  }
  std::stable_sort(merged.begin(), merged.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  return merged;
}

}  // namespace

void ItemWorker::OnMessages(absl::Span<listener::Delivery> deliveries,
                            listener::DeliveryContext& context) {
  std::vector<bool> left(deliveries.size(), false);
  if (sees_misfits_) left = LeaveMisfits(deliveries, context);
  ExpectContent(deliveries);
  for (size_t i = 0; i < deliveries.size(); ++i) {
    if (left[i]) continue;
    listener::Delivery& delivery = deliveries[i];
    if (context.stop_token().stop_requested()) break;  // deliveries that never began are released
    if (!context.Begin(delivery).ok()) continue;
    const Attempt attempt{delivery.attempt,
                          delivery.last_attempt,
                          delivery.message->interrupted,
                          context.stop_token(delivery),
                          delivery.message->insertion_time,
                          delivery.queue};
    MUSTER_FAILPOINT("processor.after_begin");
    Settlement settlement = Work(*delivery.message, attempt);
    MUSTER_FAILPOINT("processor.after_handler");
    context.Settle(delivery, std::move(settlement));
  }
  spans_.RecordReceive(deliveries);
}

// All of them before the first of the others begins, which may charge its neighbours with it.
std::vector<bool> ItemWorker::LeaveMisfits(absl::Span<const listener::Delivery> deliveries,
                                           listener::DeliveryContext& context) {
  std::vector<bool> left(deliveries.size(), false);
  sees_misfits_ = false;
  for (size_t i = 0; i < deliveries.size(); ++i) {
    const absl::StatusOr<item::WorkItem> item =
        item::DecodeWorkItemHeader(deliveries[i].message->body);
    if (!item.ok() || IsCancelled(item->identity.batch)) continue;
    const std::optional<std::string> misfit = router_.KnownMisfit(item->identity);
    if (!misfit.has_value()) continue;
    context.Settle(deliveries[i], LeaveMisfit(*item, *misfit));
    left[i] = sees_misfits_ = true;
  }
  return left;
}

Settlement ItemWorker::Work(const queue::Message& message, const Attempt& attempt) {
  absl::StatusOr<item::WorkItem> item = item::DecodeWorkItem(message.body, setup_->blobs);
  if (absl::IsDataLoss(item.status())) return GiveUpUnlessOver(message, item.status());
  if (absl::IsUnimplemented(item.status())) return LeaveToNewer(message, item.status());
  if (!item.ok()) return PutOff(item.status());
  if (IsCancelled(item->identity.batch)) return Unrun();
  AttemptSpan span(&spans_, attempt.queue, attempt.number, &*item);
  const base::LogTrace log_trace(item->identity.trace.has_value() ? &*item->identity.trace
                                                                  : nullptr);
  const bool is_timed = setup_->metrics.times_attempts();
  const absl::Duration begun = is_timed ? setup_->clock->Monotonic() : absl::ZeroDuration();
  Settlement settlement = WorkOnItem(message, attempt, &*item);
  if (is_timed) {
    setup_->metrics.ObserveAttempt(ErrorOf(settlement.kind), setup_->clock->Monotonic() - begun);
  }
  span.End(&settlement);
  return settlement;
}

Settlement ItemWorker::WorkOnItem(const queue::Message& message, const Attempt& attempt,
                                  item::WorkItem* item) {
  const absl::StatusOr<ItemWorker*> worker = router_.Route(item->identity);
  if (worker.ok()) {
    if (item->by_reference) {
      if (std::optional<Settlement> absent = ReadContent(message, item)) return *std::move(absent);
    }
    Settlement settlement = WorkUnlessCancelled(**worker, *item, attempt);
    slice_ = std::move(item->slice);
    return settlement;
  }
  sees_misfits_ = true;
  return LeaveMisfit(*item, std::string(worker.status().message()));
}

Settlement ItemWorker::LeaveMisfit(const item::WorkItem& item, std::string why) const {
  // Its initiator puts the item again once a worker fits.
  if (IsSuspended(item.identity.batch)) return Unrun();
  return LeaveToOthers(item, WantedBy(item.identity), std::move(why));
}

Settlement ItemWorker::LeaveToOthers(const item::WorkItem& item, std::string wanted,
                                     std::string why) const {
  if (setup_->misfits.Insert(item.identity.batch)) {
    base::Log(base::kError, "no fitting worker for the items of a batch",
              {{"first", absl::StrCat(item.identity.batch, "/", item.index)}, {"why", why}});
  }
  Settlement settlement = Settle(Settlement::Kind::kDefer, absl::ZeroDuration(), std::move(why));
  settlement.wanted = std::move(wanted);
  return settlement;
}

Settlement ItemWorker::LeaveToNewer(const queue::Message& message, const absl::Status& why) const {
  const absl::StatusOr<item::WorkItem> header = item::DecodeWorkItemHeader(message.body);
  if (!header.ok()) return Dead(header.status());
  if (IsCancelled(header->identity.batch)) return Unrun();
  return LeaveToOthers(*header, kNewerMuster, std::string(why.message()));
}

Settlement ItemWorker::GiveUpUnlessOver(const queue::Message& message,
                                        const absl::Status& why) const {
  const absl::StatusOr<item::WorkItem> header = item::DecodeWorkItemHeader(message.body);
  if (!header.ok()) return Dead(why);
  const uint64_t batch = header->identity.batch;
  if (IsCancelled(batch)) return Unrun();
  if (!setup_->is_over) return Dead(why);
  const absl::StatusOr<bool> over = setup_->is_over(batch);
  if (ledger::IsUnknownToAll(over.status())) return Dead(why);
  if (!over.ok()) return PutOff(over.status());
  return *over ? Unrun() : Dead(why);
}

void ItemWorker::ExpectContent(absl::Span<const listener::Delivery> deliveries) const {
  if (setup_->content == nullptr || deliveries.size() < 2) return;
  std::vector<content::ItemReference> expected;
  for (const listener::Delivery& delivery : deliveries) {
    const absl::StatusOr<item::WorkItem> item = item::DecodeWorkItemHeader(delivery.message->body);
    if (!item.ok() || !item->by_reference) continue;
    expected.push_back(ReferenceOf(*item));
  }
  setup_->content->Expect(expected);
}

std::optional<Settlement> ItemWorker::ReadContent(const queue::Message& message,
                                                  item::WorkItem* item) {
  const uint64_t batch = item->identity.batch;
  if (setup_->content == nullptr) {
    return LeaveToNewer(message, absl::UnimplementedError("this worker knows no sources"));
  }
  item->slice = std::move(slice_);
  const absl::Status read = setup_->content->Read(ReferenceOf(*item), &item->slice);
  if (read.ok()) {
    setup_->absent->NoteRead(batch);
    return std::nullopt;
  }
  // What its initiator stopped, it puts again once the content is back.
  if (IsCancelled(batch) || IsSuspended(batch)) return Unrun();
  if (absl::IsInvalidArgument(read)) return GiveUpUnlessOver(message, read);
  if (absl::IsNotFound(read) && setup_->is_over) {
    const absl::StatusOr<bool> over = setup_->is_over(batch);
    if (over.ok() && *over) return Unrun();
  }
  const AbsentContent::Fate fate = setup_->absent->Judge(batch, message.dequeue_count, read);
  if (fate.leaves) return Unrun();
  return Settle(Settlement::Kind::kDefer, fate.pause, read.ToString());
}

bool ItemWorker::IsSuspended(uint64_t batch) const {
  return setup_->suspended != nullptr && setup_->suspended->Contains(batch);
}

bool ItemWorker::IsCancelled(uint64_t batch) const {
  return setup_->cancelled != nullptr && setup_->cancelled->Contains(batch);
}

Settlement ItemWorker::WorkUnlessCancelled(ItemWorker& worker, const item::WorkItem& item,
                                           Attempt attempt) const {
  if (setup_->cancelled == nullptr) return worker.WorkOnFitting(item, attempt);
  const auto running = setup_->cancelled->Run(item.identity.batch, attempt.stop_token);
  attempt.stop_token = running->token();
  Settlement settlement = worker.WorkOnFitting(item, attempt);
  // If the worker finished the item all the same, its result counts; otherwise the item is not
  // tried again.
  const bool is_done = settlement.kind == Settlement::Kind::kOk;
  return is_done || !IsCancelled(item.identity.batch) ? settlement : Unrun();
}

Settlement ItemWorker::WorkOnFitting(const item::WorkItem& item, const Attempt& attempt) {
  return item.oversized_bytes.has_value() ? RejectOversized(item, attempt) : WorkOn(item, attempt);
}

Settlement ItemWorker::RejectOversized(const item::WorkItem& item, const Attempt& attempt) const {
  setup_->metrics.rejected_oversized.Add();
  return Aggregate(
      item, attempt,
      {{}, {{item.first_line, input::OversizedReason(*item.oversized_bytes, item.limit_bytes)}}});
}

absl::Status ItemWorker::Parse(const item::WorkItem& item) {
  if (!parser_.has_value() || item.identity.positions != positions_ ||
      item.identity.header_fields != header_fields_) {
    const input::InputFormat& format = setup_->job->input;
    const item::BatchIdentity& identity = item.identity;
    MUSTER_RETURN_IF_ERROR(
        input::RecordParser::CheckPositions(format, identity.positions, identity.header_fields));
    positions_ = identity.positions;
    header_fields_ = identity.header_fields;
    parser_.emplace(format, positions_, header_fields_);
  }
  parser_->Parse(item.slice, item.first_line, &records_);
  if (records_.total() == item.transactions) {
    if (item.ordered.has_value()) SetLines(item.ordered->lines, &records_);
    return absl::OkStatus();
  }
  // Splitter and parser disagree: counting anything would break "in = aggregated + rejected".
  return absl::DataLossError(absl::StrCat("the item has ", item.transactions,
                                          " transactions, its slice ", records_.total()));
}

Settlement ItemWorker::WorkOn(const item::WorkItem& item, const Attempt& attempt) {
  if (const absl::Status parsed = Parse(item); !parsed.ok()) return Dead(parsed);
  handler::ItemContext context;
  context.batch = item.identity.batch;
  context.index = item.index;
  context.attempt = attempt.number;
  context.last_attempt = attempt.last;
  context.stop_token = attempt.stop_token;
  context.trace = item.identity.trace;
  std::optional<handler::Results> own;
  absl::StatusOr<handler::Outcome> ran = runner_.Run(context, attempt.suspect, records_, &own);
  if (!ran.ok()) return PutOff(ran.status());
  if (ran->kind != handler::Outcome::Kind::kOk) return SettlementOf(*std::move(ran));
  handler::Results& results = *own;
  const std::vector<handler::Rejection> rejections = MergeRejections(records_, results);
  // ProcessGuarded has verified that each transaction has one verdict.
  MUSTER_CHECK(results.counted() + static_cast<int64_t>(results.rejections().size()) ==
                   static_cast<int64_t>(records_.records.size()),
               "item ", item.identity.batch, "/", item.index, ": counted ", results.counted(),
               ", rejected ", results.rejections().size(), ", of ", records_.records.size());
  setup_->transactions_processed += item.transactions;
  if (!rejections.empty()) {
    setup_->metrics.rejected_format.Add(static_cast<double>(records_.rejected.size()));
    setup_->metrics.rejected_handler.Add(
        static_cast<double>(rejections.size() - records_.rejected.size()));
  }
  return Aggregate(item, attempt, {results.TakePartials(), rejections, results.TakeOutputs()});
}

Settlement ItemWorker::Aggregate(const item::WorkItem& item, const Attempt& attempt,
                                 item::ItemContribution contribution) const {
  const bool has_outputs = !setup_->schema.outputs.empty();
  if (has_outputs && !contribution.outputs.has_value()) contribution.outputs.emplace();
  if (!has_outputs) contribution.outputs.reset();
  absl::StatusOr<std::string> result = item::EncodeAggregated(
      item, {setup_->handler_version, setup_->instance, attempt.number, attempt.put}, contribution,
      setup_->blobs);
  return result.ok() ? Publish(*std::move(result)) : PutOff(result.status());
}

std::string ItemWorker::VersionThatGivesUp(const item::BatchIdentity& identity) {
  // Workers of every revision used the version that the batch is bound to.
  if (!identity.handler_version.empty()) return identity.handler_version;
  const absl::StatusOr<ItemWorker*> worker = router_.Route(identity);
  return (worker.ok() ? *worker : this)->setup_->handler_version;
}

std::vector<queue::NewMessage> ItemWorker::OnGivenUp(const queue::Message& message,
                                                     const queue::Cause& cause) {
  absl::StatusOr<item::WorkItem> item = item::DecodeWorkItemHeader(message.body);
  if (!item.ok()) {
    // The item and its batch are unknown, so no result can be sent. The batch stays incomplete
    // until the initiator puts the item again.
    base::Log(base::kError, "a message that is no work item goes to the poison queue",
              {{"message", message.message_id}, {"why", item.status().ToString()}});
    return {};
  }
  if (item->by_reference && setup_->content != nullptr) {
    base::LogUnlessOk(base::kWarning,
                      "a dead letter can be redriven only while its source is there",
                      setup_->content->KeepForRedrive(ReferenceOf(*item)),
                      {{"item", absl::StrCat(item->identity.batch, "/", item->index)}});
  }
  if (telemetry::Wants(setup_->spans, item->identity.trace)) {
    base::TraceContext& trace = *item->identity.trace;
    trace.parent = item::ItemSpanId(trace, item->identity.batch, item->index);
  }
  const item::Provenance provenance{VersionThatGivesUp(item->identity), setup_->instance,
                                    cause.attempts, message.insertion_time};
  // The reason may come from a linked handler: bound its length and make it printable.
  const std::string why = base::Printable(cause.reason, queue::kMaxReasonBytes);
  return Publish(item::EncodeDeadLettered(*item, provenance, why)).outputs;
}

}  // namespace muster::processor
