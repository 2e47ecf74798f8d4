#include "muster/ledger/batch_ledger.h"

namespace muster::ledger {

absl::string_view BatchStateName(BatchState state) {
  switch (state) {
    case BatchState::kOpen:
      return "open";
    case BatchState::kSealed:
      return "sealed";
    case BatchState::kComplete:
      return "complete";
    case BatchState::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace muster::ledger
