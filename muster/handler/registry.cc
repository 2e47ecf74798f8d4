#include "muster/handler/registry.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/nearest_name.h"

namespace muster::handler {

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
