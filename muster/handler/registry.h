// HandlerRegistry: the linked handlers that a program knows, by the name that a job file gives.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/handler/handler.h"

namespace muster::handler {

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
