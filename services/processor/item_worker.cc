#include "services/processor/item_worker.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/handler/printable.h"
#include "muster/queue/limits.h"
#include "services/processor/result_codec.h"

namespace muster::processor {
namespace {

using listener::Settlement;

// An item that this worker's code does not fit waits so long for a worker that does.
constexpr absl::Duration kMisfitDelay = absl::Seconds(10);

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

// Everything but Ok, which needs the results.
Settlement SettlementOf(handler::Outcome outcome) {
  switch (outcome.kind) {
    case handler::Outcome::Kind::kDefer:
      return Settle(Settlement::Kind::kDefer, outcome.delay, std::move(outcome.why));
    case handler::Outcome::Kind::kDead:
      return Settle(Settlement::Kind::kDead, outcome.delay, std::move(outcome.why));
    case handler::Outcome::Kind::kRelease:
      return Settle(Settlement::Kind::kRelease, outcome.delay, std::move(outcome.why));
    case handler::Outcome::Kind::kUnset:
      return Settle(Settlement::Kind::kRetry, absl::ZeroDuration(), "the handler gave no outcome");
    case handler::Outcome::Kind::kOk:
    case handler::Outcome::Kind::kRetry:
      break;
  }
  return Settle(Settlement::Kind::kRetry, outcome.delay, std::move(outcome.why));
}

std::vector<handler::Transaction> TransactionsOf(const input::ParsedRecords& records) {
  std::vector<handler::Transaction> transactions;
  transactions.reserve(records.records.size());
  for (size_t i = 0; i < records.records.size(); ++i) {
    const absl::Span<const absl::string_view> fields = records.Fields(i);
    transactions.emplace_back(static_cast<int>(i), records.records[i].line, fields.data(),
                              static_cast<int>(fields.size()));
  }
  return transactions;
}

// What the parser refused and what the handler refused, by line.
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

ItemWorker::ItemWorker(const WorkerSetup* setup, std::unique_ptr<handler::Handler> handler)
    : setup_(setup), handler_(std::move(handler)) {}

void ItemWorker::OnMessages(absl::Span<listener::Delivery> deliveries,
                            listener::DeliveryContext& context) {
  for (listener::Delivery& delivery : deliveries) {
    if (context.stop_token().stop_requested()) return;  // what never began is released
    if (!context.Begin(delivery).ok()) continue;
    const Attempt attempt{delivery.attempt, delivery.last_attempt, context.stop_token(delivery)};
    context.Settle(delivery, Work(*delivery.message, attempt));
  }
}

Settlement ItemWorker::Work(const queue::Message& message, const Attempt& attempt) {
  absl::StatusOr<wire::WorkItem> item = wire::DecodeWorkItem(message.body, setup_->blobs);
  if (absl::IsDataLoss(item.status())) {
    return Settle(Settlement::Kind::kDead, absl::ZeroDuration(),
                  std::string(item.status().message()));
  }
  if (!item.ok()) {
    return Settle(Settlement::Kind::kRetry, absl::ZeroDuration(), item.status().ToString());
  }
  if (std::optional<std::string> misfit = Misfit(item->identity); misfit.has_value()) {
    if (setup_->misfits.Insert(item->identity.batch)) {
      base::Log(
          base::kError, "no fitting worker for the items of a batch",
          {{"first", absl::StrCat(item->identity.batch, "/", item->index)}, {"why", *misfit}});
    }
    return Settle(Settlement::Kind::kDefer, kMisfitDelay, *std::move(misfit));
  }
  return item->oversized_bytes.has_value() ? RejectOversized(*item, attempt)
                                           : WorkOn(*item, attempt);
}

std::optional<std::string> ItemWorker::Misfit(const wire::BatchIdentity& identity) const {
  if (identity.job == setup_->job->name && identity.job_revision == setup_->job->revision &&
      identity.handler_version == setup_->handler_version) {
    return std::nullopt;
  }
  return absl::StrCat("batch ", identity.batch, " wants job ", identity.job, " revision ",
                      identity.job_revision.substr(0, 12), " handler version ",
                      identity.handler_version, "; this worker has job ", setup_->job->name,
                      " revision ", setup_->job->revision.substr(0, 12), " handler version ",
                      setup_->handler_version);
}

Settlement ItemWorker::RejectOversized(const wire::WorkItem& item, const Attempt& attempt) const {
  return Aggregate(
      item, attempt, {},
      {{item.first_line, input::OversizedReason(*item.oversized_bytes, item.limit_bytes)}});
}

absl::Status ItemWorker::Parse(const wire::WorkItem& item) {
  if (!parser_.has_value() || item.identity.positions != positions_ ||
      item.identity.header_fields != header_fields_) {
    const input::InputFormat& format = setup_->job->input;
    const wire::BatchIdentity& identity = item.identity;
    MUSTER_RETURN_IF_ERROR(
        input::RecordParser::CheckPositions(format, identity.positions, identity.header_fields));
    positions_ = identity.positions;
    header_fields_ = identity.header_fields;
    parser_.emplace(format, positions_, header_fields_);
  }
  parser_->Parse(item.slice, item.first_line, &records_);
  if (records_.total() == item.transactions) return absl::OkStatus();
  // Splitter and parser disagree: counting anything would break "in = aggregated + rejected".
  return absl::DataLossError(absl::StrCat("the item has ", item.transactions,
                                          " transactions, its slice ", records_.total()));
}

Settlement ItemWorker::WorkOn(const wire::WorkItem& item, const Attempt& attempt) {
  if (const absl::Status parsed = Parse(item); !parsed.ok()) {
    return Settle(Settlement::Kind::kDead, absl::ZeroDuration(), std::string(parsed.message()));
  }
  handler::ItemContext context;
  context.batch = item.identity.batch;
  context.index = item.index;
  context.attempt = attempt.number;
  context.last_attempt = attempt.last;
  context.stop_token = attempt.stop_token;
  const handler::WorkItem work(std::move(context), TransactionsOf(records_));
  handler::Results results(&setup_->schema, static_cast<int>(work.transactions().size()));
  handler::Outcome outcome = RunHandler(work, results);
  if (outcome.kind != handler::Outcome::Kind::kOk) return SettlementOf(std::move(outcome));
  if (const absl::Status verdict = results.Verdict(); !verdict.ok()) {
    return Settle(Settlement::Kind::kRetry, absl::ZeroDuration(), std::string(verdict.message()));
  }
  const std::vector<handler::Rejection> rejections = MergeRejections(records_, results);
  setup_->transactions_processed += item.transactions;
  return Aggregate(item, attempt, results.TakePartials(), rejections);
}

Settlement ItemWorker::Aggregate(const wire::WorkItem& item, const Attempt& attempt,
                                 const std::vector<handler::GroupPartial>& groups,
                                 const std::vector<handler::Rejection>& rejections) const {
  absl::StatusOr<std::string> result =
      EncodeAggregated(item, {setup_->handler_version, setup_->instance, attempt.number}, groups,
                       rejections, setup_->blobs);
  if (result.ok()) return Publish(*std::move(result));
  return Settle(Settlement::Kind::kRetry, absl::ZeroDuration(), result.status().ToString());
}

handler::Outcome ItemWorker::RunHandler(const handler::WorkItem& item, handler::Results& results) {
  try {
    return handler_->Process(item, results);
  } catch (const std::exception& error) {
    return handler::Outcome::Retry(absl::ZeroDuration(),
                                   absl::StrCat("the handler threw: ", error.what()));
  } catch (...) {
    return handler::Outcome::Retry(absl::ZeroDuration(), "the handler threw");
  }
}

std::vector<queue::NewMessage> ItemWorker::OnGivenUp(const queue::Message& message,
                                                     const queue::Cause& cause) {
  const absl::StatusOr<wire::WorkItem> item = wire::DecodeWorkItemHeader(message.body);
  if (!item.ok()) {
    // Nobody can tell whose item it was. Its batch stays incomplete until it is put again.
    base::Log(base::kError, "a message that is no work item goes to the poison queue",
              {{"message", message.message_id}, {"why", item.status().ToString()}});
    return {};
  }
  const Provenance provenance{setup_->handler_version, setup_->instance, cause.attempts};
  // A linked handler may have said anything, and at any length.
  const std::string why = handler::Printable(cause.reason, queue::kMaxReasonBytes);
  return Publish(EncodeDeadLettered(*item, provenance, why)).outputs;
}

}  // namespace muster::processor
