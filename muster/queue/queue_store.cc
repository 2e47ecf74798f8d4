#include "muster/queue/queue_store.h"

#include "absl/strings/str_cat.h"

namespace muster::queue {

std::string QueueId::ToString() const { return absl::StrCat(account, "/", name); }

}  // namespace muster::queue
