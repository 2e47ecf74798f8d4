#include "cli/server/trace_option.h"

#include <cstdlib>
#include <ostream>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"

namespace muster::cli {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): alone
  return value == nullptr ? "" : value;
}

// With the state that goes with it, where that can be passed on.
absl::StatusOr<base::TraceContext> FromEnvironment(const std::string& traceparent) {
  auto trace = base::TraceContext::FromTraceparent(traceparent);
  if (!trace.ok()) return trace;
  std::string state = Variable("TRACESTATE");
  if (base::CheckTraceState(state).ok()) trace->state = std::move(state);
  return trace;
}

}  // namespace

void AddTraceparent(CLI::App* command, std::string* traceparent) {
  command
      ->add_option("--traceparent", *traceparent,
                   "W3C trace that the batch belongs to; without it, TRACEPARENT of the "
                   "environment, or a new one")
      ->check([](const std::string& text) -> std::string {
        const auto trace = base::TraceContext::FromTraceparent(text);
        return trace.ok() ? "" : absl::StrCat("'", text, "' ", trace.status().message());
      });
}

std::optional<base::TraceContext> TraceOfCaller(const std::string& traceparent,
                                                const Environment& environment) {
  if (!traceparent.empty()) return base::TraceContext::FromTraceparent(traceparent).value();
  const std::string inherited = Variable("TRACEPARENT");
  if (inherited.empty()) return std::nullopt;
  auto trace = FromEnvironment(inherited);
  if (trace.ok()) return *std::move(trace);
  *environment.err << "muster: TRACEPARENT is ignored: it " << trace.status().message() << "\n";
  return std::nullopt;
}

}  // namespace muster::cli
