// SPDX-License-Identifier: Apache-2.0

// Handler: the interface to the user's code. This header, work_item.h and results.h are all that a
// handler in C++ includes.
//
//   class Retail final : public handler::Handler {
//     Outcome Process(const WorkItem& item, Results& results) override {
//       for (const Transaction& t : item.transactions()) results.Count(t, {…});
//       return Outcome::Ok();
//     }
//   };
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/handler/results.h"
#include "muster/handler/work_item.h"

namespace muster::handler {

// The outcome of a work item as a whole. Results::Reject refuses single transactions.
struct Outcome {
  enum class Kind {
    kUnset,    // treated as Retry: forgetting to answer must never look like success
    kOk,       // every transaction has its verdict in Results
    kRetry,    // try again; counts against max_attempts
    kDefer,    // not now, and not this item's fault: try again without charging the attempt
    kDead,     // will never work: to the poison queue with `why`
    kUnfit,    // the answer of a handler that works has a value that the results cannot hold: `why`
    kRelease,  // this worker is stopping: give the item back, uncharged
  };

  static Outcome Ok() { return {Kind::kOk, absl::ZeroDuration(), ""}; }
  // A zero `after` leaves the delay to the job's retry policy.
  static Outcome Retry(absl::Duration after, std::string why) {
    return {Kind::kRetry, after, std::move(why)};
  }
  static Outcome Defer(absl::Duration after, std::string why) {
    return {Kind::kDefer, after, std::move(why)};
  }
  static Outcome Dead(std::string why) {
    return {Kind::kDead, absl::ZeroDuration(), std::move(why)};
  }
  // Not for linked handlers: Results rejects such a transaction by itself. The worker takes the
  // item apart at once, and rejects the transactions whose answers alone do not fit, with `why`.
  static Outcome Unfit(std::string why) {
    return {Kind::kUnfit, absl::ZeroDuration(), std::move(why)};
  }
  static Outcome Release() { return {Kind::kRelease, absl::ZeroDuration(), ""}; }

  Kind kind = Kind::kUnset;
  absl::Duration delay = absl::ZeroDuration();
  std::string why;
};

// A worker uses a handler alone, so it need not be thread-safe. It may keep state between items if
// that only makes it faster. When its worker leaves, another worker may take it over, on another
// thread. The same item may come more than once (delivery is at least once): what Process does
// outside of `results` must be idempotent by item.id(). An item during which its worker died runs
// again in a process of its own; one that has failed on all attempts but the last runs transaction
// by transaction.
class Handler {
 public:
  virtual ~Handler() = default;

  // Works on one item within item.deadline() and stops early when item.stop_token() is set.
  // `results` counts only if the outcome is Ok. Must not throw; an exception is treated as Retry
  // with its text.
  virtual Outcome Process(const WorkItem& item, Results& results) = 0;
};

// Makes a worker's handler for a job. An error (for example, the job lacks a column or group that
// the handler needs) stops the run before it starts.
using HandlerFactory = std::function<absl::StatusOr<std::unique_ptr<Handler>>(const JobSchema&)>;

// Calls handler.Process and returns its outcome; Retry with the exception's text when it throws,
// and Retry when it returns Ok with verdicts that do not add up (Results::Verdict), or no outcome
// at all.
Outcome ProcessGuarded(Handler& handler, const WorkItem& item, Results& results);

// HandlerRegistry: the linked handlers of a program, by the name that a job file gives.

struct LinkedHandler {
  std::string name;
  // Changes whenever the results may change: it is pinned to a batch and part of its receipt.
  std::string version;
  HandlerFactory factory;
};

// Filled by main() before anything starts, read-only afterwards.
class HandlerRegistry {
 public:
  // A second handler of the same name replaces the first.
  void Register(LinkedHandler handler);

  // NotFound naming the registered handlers.
  absl::StatusOr<const LinkedHandler*> Find(absl::string_view name) const;

 private:
  std::map<std::string, LinkedHandler, std::less<>> handlers_;
};

}  // namespace muster::handler
