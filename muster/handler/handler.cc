// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/handler.h"

#include <exception>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/text.h"

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

void HandlerRegistry::Register(LinkedHandler handler) {
  std::string name = handler.name;
  handlers_.insert_or_assign(std::move(name), std::move(handler));
}

absl::StatusOr<const LinkedHandler*> HandlerRegistry::Find(absl::string_view name) const {
  const auto found = handlers_.find(std::string(name));
  if (found != handlers_.end()) return &found->second;
  std::vector<std::string> known;
  for (const auto& [other, handler] : handlers_) known.push_back(other);
  return absl::NotFoundError(absl::StrCat("this program has no handler '", name, "'; it has: ",
                                          known.empty() ? "none" : absl::StrJoin(known, ", "),
                                          base::DidYouMean(name, known)));
}

}  // namespace muster::handler
