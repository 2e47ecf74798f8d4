#include "muster/kubernetes/workload.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/kubernetes/json_fields.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes {

Address ScaleAddress(const Workload& workload) {
  return {workload.kind == WorkloadKind::kDeployment ? kDeployments : kStatefulSets,
          workload.name_space, workload.name, "scale"};
}

absl::StatusOr<Scale> ReadScale(Client* client, const Workload& workload) {
  const Address address = ScaleAddress(workload);
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json scale, client->Get(address));
  // Kubernetes leaves out what is 0; what has no version is no object of its.
  const int64_t replicas = IntegerAt(scale, {"spec", "replicas"});
  Scale read{static_cast<int>(std::clamp<int64_t>(replicas, 0, std::numeric_limits<int>::max())),
             TextAt(scale, {"status", "selector"}), TextAt(scale, {"metadata", "resourceVersion"})};
  if (!read.version.empty()) return read;
  return absl::UnavailableError(
      absl::StrCat("get ", Describe(address), ": the answer is no Scale"));
}

absl::Status WriteScale(Client* client, const Workload& workload, const Scale& read, int replicas) {
  const nlohmann::json scale = {
      {"apiVersion", "autoscaling/v1"},
      {"kind", "Scale"},
      {"metadata",
       {{"name", workload.name},
        {"namespace", workload.name_space},
        {"resourceVersion", read.version}}},
      {"spec", {{"replicas", replicas}}},
  };
  return client->Update(ScaleAddress(workload), scale).status();
}

}  // namespace muster::kubernetes
