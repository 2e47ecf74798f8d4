#include "muster/scaling/policy/standby.h"

#include <algorithm>
#include <cmath>

#include "muster/scaling/policy/limits.h"

namespace muster::scaling::policy {

int StandbySize(double items, const Supply& supply, const Promise& promise) {
  if (promise.deadline >= supply.cold_start + promise.margin()) return 0;
  const double run =
      absl::ToDoubleSeconds(promise.deadline - promise.service_time - promise.margin());
  if (!(run > 0) || !(supply.items_per_second > 0) || !(items > 0)) return 0;
  const double replicas = std::ceil(items / (supply.items_per_second * run));
  return static_cast<int>(std::min<double>(replicas, kMaxReplicas));
}

}  // namespace muster::scaling::policy
