// What has replicas, and its scale: the number that it was told, and how to find its pods.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/kubernetes/client.h"
#include "muster/kubernetes/resource.h"

namespace muster::kubernetes {

enum class WorkloadKind { kDeployment, kStatefulSet };

struct Workload {
  WorkloadKind kind = WorkloadKind::kDeployment;
  std::string name_space;
  std::string name;
};

struct Scale {
  int replicas = 0;
  std::string selector;  // of its pods, as a label selector
  std::string version;
};

Address ScaleAddress(const Workload& workload);

absl::StatusOr<Scale> ReadScale(Client* client, const Workload& workload);

// Tells it to have `replicas`, if it still is as `read` has it. Aborted: it is not; read again.
absl::Status WriteScale(Client* client, const Workload& workload, const Scale& read, int replicas);

}  // namespace muster::kubernetes
