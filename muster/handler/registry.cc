#include "muster/handler/registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::handler {

void HandlerRegistry::Register(LinkedHandler handler) {
  std::string name = handler.name;
  handlers_.insert_or_assign(std::move(name), std::move(handler));
}

absl::StatusOr<const LinkedHandler*> HandlerRegistry::Find(absl::string_view name) const {
  const auto found = handlers_.find(std::string(name));
  if (found != handlers_.end()) return &found->second;
  const auto append_name = [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first);
  };
  const std::string known = absl::StrJoin(handlers_, ", ", append_name);
  return absl::NotFoundError(absl::StrCat("this program has no handler '", name,
                                          "'; it has: ", known.empty() ? "none" : known));
}

}  // namespace muster::handler
