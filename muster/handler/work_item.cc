#include "muster/handler/work_item.h"

#include "absl/strings/str_cat.h"

namespace muster::handler {

std::string WorkItem::id() const {
  std::string id = absl::StrCat(context_.batch, "/", context_.index);
  if (context_.only_line.has_value()) absl::StrAppend(&id, ":", *context_.only_line);
  return id;
}

}  // namespace muster::handler
