#include "muster/handler/work_item.h"

#include "absl/strings/str_cat.h"

namespace muster::handler {

std::string WorkItem::id() const { return absl::StrCat(context_.batch, "/", context_.index); }

}  // namespace muster::handler
