// Handler: the seam to the user's code. This header, schema.h, work_item.h and results.h are all
// that a handler in C++ includes.
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

// What became of a work item as a whole. Single transactions are refused with Results::Reject.
struct Outcome {
  enum class Kind {
    kUnset,    // treated as Retry: forgetting to answer must never look like success
    kOk,       // every transaction has its verdict in Results
    kRetry,    // try again; counts against max_attempts
    kDefer,    // not now, and not this item's fault: try again without charging the attempt
    kDead,     // will never work: to the poison queue with `why`
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
  static Outcome Release() { return {Kind::kRelease, absl::ZeroDuration(), ""}; }

  Kind kind = Kind::kUnset;
  absl::Duration delay = absl::ZeroDuration();
  std::string why;
};

// One instance per worker: it need not be thread-safe, and may keep state between items that only
// makes it faster. When its worker leaves it may be passed on to another, with another thread. The
// same item may come more than once (delivery is at least once): what Process does outside of
// `results` must be idempotent by item.id(). An item whose worker died with it is worked on in a
// process of its own; one that has failed on all attempts but the last, transaction by transaction.
class Handler {
 public:
  virtual ~Handler() = default;

  // Works on one item within item.deadline() and stops early when item.stop_token() says so. What
  // stands in `results` counts only if the outcome is Ok. Must not throw; an exception is treated
  // as Retry with its text.
  virtual Outcome Process(const WorkItem& item, Results& results) = 0;
};

// Makes a worker's handler for a job. An error (a column or group that the handler needs is not in
// the job) stops the run before it starts.
using HandlerFactory = std::function<absl::StatusOr<std::unique_ptr<Handler>>(const JobSchema&)>;

// Calls a handler as if it kept its promise not to throw.

// What Process answers; Retry with the exception's text when it throws, or when it says Ok but its
// verdicts do not work out (Results::Verdict), or gives no outcome at all.
Outcome ProcessGuarded(Handler& handler, const WorkItem& item, Results& results);

// HandlerRegistry: the linked handlers that a program knows, by the name that a job file gives.

struct LinkedHandler {
  std::string name;
  // Changes whenever the results may change: it is pinned to a batch and stands in its receipt.
  std::string version;
  HandlerFactory factory;
};

// Filled by main() before anything starts, read-only afterwards.
class HandlerRegistry {
 public:
  // A second handler of the same name replaces the first.
  void Register(LinkedHandler handler);

  // NotFound naming the handlers that there are.
  absl::StatusOr<const LinkedHandler*> Find(absl::string_view name) const;

 private:
  std::map<std::string, LinkedHandler, std::less<>> handlers_;
};

}  // namespace muster::handler
