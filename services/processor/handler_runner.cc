// SPDX-License-Identifier: Apache-2.0
#include "services/processor/handler_runner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "services/processor/slow_items.h"

namespace muster::processor {
namespace {

// When an item is run one transaction at a time, at most one in kPoisonShare of them may be poison
// (at least one); otherwise the handler itself is broken.
constexpr size_t kPoisonShare = 10;
// … and together they may take at most so many deadlines.
constexpr int kPoisonPatience = 3;

// Whether the item has failed as a whole on all attempts before this last one.
bool IsToBeTakenApart(const handler::ItemContext& context, const input::ParsedRecords& records) {
  return context.last_attempt && context.attempt > 1 && records.records.size() > 1;
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

}  // namespace

absl::StatusOr<handler::Outcome> HandlerRunner::Run(const handler::ItemContext& context,
                                                    bool is_suspect,
                                                    const input::ParsedRecords& records,
                                                    std::optional<handler::Results>* results) {
  MUSTER_ASSIGN_OR_RETURN(handler::Handler* const handler, HandlerFor(is_suspect));
  const auto due = static_cast<int>(records.records.size());
  results->emplace(&setup_->schema, due);
  handler::Outcome outcome = IsToBeTakenApart(context, records)
                                 ? RunOneByOne(*handler, context, records, **results)
                                 : Call(*handler, context, TransactionsOf(records), **results);
  if (outcome.kind == handler::Outcome::Kind::kUnfit) {
    // No failure of the handler: neither it nor its neighbours pay for a value that does not fit.
    results->emplace(&setup_->schema, due);
    outcome = RunOneByOne(*handler, context, records, **results);
  }
  setup_->failures.Note(setup_->job->name, absl::StrCat(context.batch, "/", context.index), outcome,
                        setup_->clock->Monotonic(), setup_->health.get());
  return outcome;
}

// A crash makes suspects of many items, of which only one is guilty: they share the isolated
// process until one of them kills it.
absl::StatusOr<handler::Handler*> HandlerRunner::HandlerFor(bool is_suspect) {
  if (!is_suspect || !setup_->isolated) return handler_.get();
  if (isolated_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(isolated_, setup_->isolated(setup_->schema));
    base::Log(base::kInfo, "suspects run in a process of their own", {{"job", setup_->job->name}});
  }
  return isolated_.get();
}

handler::Outcome HandlerRunner::Call(handler::Handler& handler, handler::ItemContext context,
                                     std::vector<handler::Transaction> transactions,
                                     handler::Results& results) {
  const ItemTime time = ItemTimeOf(*setup_->job);
  // Handlers outside of the process have clocks of their own, which leave out what is no item's
  // fault, such as a start that is held back.
  const bool is_inside = !time.is_ended && &handler == handler_.get();
  if (is_inside) context.deadline = setup_->clock->Now() + time.deadline;
  const handler::WorkItem item(std::move(context), std::move(transactions));
  const SlowItems::Call call(
      setup_->slow_items,
      {setup_->job->name, item.id(), HandlerInWords(setup_->job->handler), time, setup_->health});
  if (!times_.records()) return handler::ProcessGuarded(handler, item, results);
  const absl::Duration begun = setup_->clock->Monotonic();
  handler::Outcome outcome = handler::ProcessGuarded(handler, item, results);
  times_.Observe(outcome.kind, setup_->clock->Monotonic() - begun);
  return outcome;
}

// A transaction on which the handler fails does not cost its neighbours then.
handler::Outcome HandlerRunner::RunOneByOne(handler::Handler& handler,
                                            const handler::ItemContext& context,
                                            const input::ParsedRecords& records,
                                            handler::Results& results) {
  const std::vector<handler::Transaction> transactions = TransactionsOf(records);
  size_t failed = 0;
  absl::Duration lost = absl::ZeroDuration();  // with those that failed
  const absl::Duration longest = ItemTimeOf(*setup_->job).deadline;
  for (const handler::Transaction& transaction : transactions) {
    if (context.stop_token.stop_requested()) return handler::Outcome::Release();
    handler::ItemContext alone = context;
    alone.only_line = transaction.line();
    handler::Results own(&setup_->schema, 1);
    const absl::Duration begun = setup_->clock->Monotonic();
    handler::Outcome outcome = Call(handler, alone, {transaction.Alone()}, own);
    switch (outcome.kind) {
      case handler::Outcome::Kind::kOk:
        results.Absorb(transaction, own);
        break;
      case handler::Outcome::Kind::kUnfit:
        results.Reject(transaction, outcome.why);
        break;
      case handler::Outcome::Kind::kDefer:
      case handler::Outcome::Kind::kRelease:
        return outcome;
      case handler::Outcome::Kind::kUnset:
      case handler::Outcome::Kind::kRetry:
      case handler::Outcome::Kind::kDead:
        // A value that does not fit brings an item here on any attempt, and the attempts that are
        // left may find what failed beside it mended.
        if (!context.last_attempt && outcome.kind != handler::Outcome::Kind::kDead) return outcome;
        // So many failures are no poison among sound transactions: the fault lies elsewhere, and
        // may be mended. So it does where a few of them took all their time: a handler that hangs
        // would keep its worker for hours.
        lost += setup_->clock->Monotonic() - begun;
        if (++failed > std::max<size_t>(1, transactions.size() / kPoisonShare) ||
            lost >= kPoisonPatience * longest) {
          return outcome;
        }
        results.Reject(transaction, absl::StrCat("poison: ", outcome.why));
        break;
    }
  }
  return handler::Outcome::Ok();
}

}  // namespace muster::processor
