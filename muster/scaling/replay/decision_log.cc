#include "muster/scaling/replay/decision_log.h"

namespace muster::scaling::replay {
namespace {

// Eight bytes, lowest first, whatever the machine's order is.
void AppendNumber(int64_t number, std::string* bytes) {
  for (int shift = 0; shift < 64; shift += 8) {
    bytes->push_back(static_cast<char>(static_cast<uint64_t>(number) >> shift & 0xff));
  }
}

}  // namespace

void DecisionHash::Add(int64_t second, const scaling::policy::Decision& decision) {
  std::string entry;
  for (const int64_t number :
       {int64_t{decision.replicas}, int64_t{decision.tasks}, int64_t{decision.standby},
        int64_t{decision.wanted}, static_cast<int64_t>(decision.binding),
        int64_t{decision.feasibility.feasible}}) {
    AppendNumber(number, &entry);
  }
  if (entry == last_) return;
  last_ = entry;
  AppendNumber(second, &entry);
  fingerprinter_.Update(entry);
}

}  // namespace muster::scaling::replay
