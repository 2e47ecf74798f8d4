#include "muster/handler/guarded.h"

#include <exception>
#include <string>

#include "absl/strings/str_cat.h"

namespace muster::handler {
namespace {

Outcome ProcessOrCatch(Handler& handler, const WorkItem& item, Results& results) {
  try {
    return handler.Process(item, results);
  } catch (const std::exception& error) {
    return Outcome::Retry(absl::ZeroDuration(), absl::StrCat("the handler threw: ", error.what()));
  } catch (...) {
    return Outcome::Retry(absl::ZeroDuration(), "the handler threw");
  }
}

}  // namespace

Outcome ProcessGuarded(Handler& handler, const WorkItem& item, Results& results) {
  Outcome outcome = ProcessOrCatch(handler, item, results);
  if (outcome.kind == Outcome::Kind::kUnset) {
    return Outcome::Retry(absl::ZeroDuration(), "the handler gave no outcome");
  }
  if (outcome.kind != Outcome::Kind::kOk) return outcome;
  const absl::Status verdict = results.Verdict();
  if (verdict.ok()) return outcome;
  return Outcome::Retry(absl::ZeroDuration(), std::string(verdict.message()));
}

}  // namespace muster::handler
