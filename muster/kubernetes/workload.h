// SPDX-License-Identifier: Apache-2.0

// Workloads, their scale and their pods, as far as muster uses them.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/kubernetes/client.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::kubernetes {

struct Pod {
  std::string name;
  std::string phase;  // "Pending", "Running", "Succeeded", "Failed", "Unknown"
  bool ready = false;
  bool deleted = false;  // it was told to go, and is still there
  // When it was made, by the API server's clock: the kubelet's startTime comes later, after the
  // wait for a node, and by the clock of that node.
  absl::Time started;
  std::optional<std::string> deletion_cost;
  // In words of Kubernetes, why it is not ready where that is no part of a usual start: no node
  // takes it, an image is not pulled, a container cannot be made or ends again and again. Empty:
  // nothing of that is known.
  std::string trouble = {};

  // It has ended, and will not run again.
  bool is_over() const { return phase == "Succeeded" || phase == "Failed"; }
};

Pod PodOf(const nlohmann::json& object);

// A list as of one instant, from which a watch may go on.
struct ObjectList {
  std::vector<nlohmann::json> items;
  std::string version;
};

// All objects at `address` that the label selector chooses, in pages. Unavailable: there are more
// than any sane target has.
absl::StatusOr<ObjectList> ListAll(Client* client, const Address& address,
                                   const std::string& selector, const std::stop_token& stop = {});

// InvalidArgument: the selector is empty, and would choose the pods of others.
absl::StatusOr<std::vector<Pod>> ListPods(Client* client, const std::string& name_space,
                                          const std::string& selector);

// A Deployment that shrinks removes the pods with the least cost first. nullopt clears it. OK also
// when the pod is gone.
absl::Status SetDeletionCost(Client* client, const std::string& name_space, const std::string& pod,
                             std::optional<int> cost);

// A workload with replicas, and its scale: the wanted number, and the selector of its pods.

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

// Sets `replicas`, if the scale still is at the version of `read`. Aborted: it is not; read again.
absl::Status WriteScale(Client* client, const Workload& workload, const Scale& read, int replicas);

}  // namespace muster::kubernetes
