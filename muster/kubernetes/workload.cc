// SPDX-License-Identifier: Apache-2.0
#include "muster/kubernetes/workload.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/kubernetes/limits.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes {

namespace {

using nlohmann::json;

constexpr char kDeletionCost[] = "controller.kubernetes.io/pod-deletion-cost";
// A list of several pages is begun anew when the server has forgotten its instant.
constexpr int kMaxListAttempts = 3;
constexpr size_t kMaxTroubleBytes = 300;

// The elements of the pod's status with this name; none where it has none.
std::vector<json> StatusList(const json& pod, const char* name) {
  const json* const list = FieldAt(pod, {"status", name});
  if (list == nullptr || !list->is_array()) return {};
  return {list->begin(), list->end()};
}

bool IsReady(const json& pod) {
  for (const json& condition : StatusList(pod, "conditions")) {
    if (TextAt(condition, {"type"}) == "Ready") return TextAt(condition, {"status"}) == "True";
  }
  return false;
}

// "ImagePullBackOff: Back-off pulling image …".
std::string ReasonAndMessage(const json& object) {
  const std::string message = TextAt(object, {"message"});
  return base::Printable(
      absl::StrCat(TextAt(object, {"reason"}), message.empty() ? "" : ": ", message),
      kMaxTroubleBytes);
}

std::string TroubleOf(const json& pod) {
  for (const json& condition : StatusList(pod, "conditions")) {
    const bool is_placed =
        TextAt(condition, {"type"}) != "PodScheduled" || TextAt(condition, {"status"}) != "False";
    if (!is_placed) return ReasonAndMessage(condition);
  }
  for (const char* const kind : {"initContainerStatuses", "containerStatuses"}) {
    for (const json& container : StatusList(pod, kind)) {
      const json* const waits = FieldAt(container, {"state", "waiting"});
      if (waits == nullptr) continue;
      const std::string reason = TextAt(*waits, {"reason"});
      if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") continue;
      return absl::StrCat("container ", TextAt(container, {"name"}), ": ",
                          ReasonAndMessage(*waits));
    }
  }
  return "";
}

std::string PageQuery(const std::string& selector, const std::string& token) {
  std::string query = absl::StrCat("limit=", kPageSize);
  if (!selector.empty()) absl::StrAppend(&query, "&labelSelector=", QueryEscaped(selector));
  if (!token.empty()) absl::StrAppend(&query, "&continue=", QueryEscaped(token));
  return query;
}

absl::StatusOr<ObjectList> ListPages(Client* client, const Address& address,
                                     const std::string& selector, const std::stop_token& stop) {
  ObjectList all;
  std::string token;
  for (int page = 0; page < kMaxPages; ++page) {
    MUSTER_ASSIGN_OR_RETURN(json list, client->List(address, PageQuery(selector, token), stop));
    if (!FieldAt(list, {"items"}) || !list["items"].is_array()) {
      return absl::UnavailableError(
          absl::StrCat("list ", Describe(address), ": the answer is no list"));
    }
    for (json& item : list["items"]) all.items.push_back(std::move(item));
    all.version = TextAt(list, {"metadata", "resourceVersion"});
    token = TextAt(list, {"metadata", "continue"});
    if (token.empty()) return all;
  }
  return absl::UnavailableError(absl::StrCat("list ", Describe(address), ": more than ",
                                             kPageSize * kMaxPages, " are too many"));
}

}  // namespace

Pod PodOf(const json& object) {
  Pod pod;
  pod.name = TextAt(object, {"metadata", "name"});
  pod.phase = TextAt(object, {"status", "phase"});
  pod.ready = IsReady(object);
  pod.deleted = FieldAt(object, {"metadata", "deletionTimestamp"}) != nullptr;
  pod.started = TimeAt(object, {"metadata", "creationTimestamp"});
  const json* const cost = FieldAt(object, {"metadata", "annotations", kDeletionCost});
  if (cost != nullptr && cost->is_string()) pod.deletion_cost = cost->get<std::string>();
  if (!pod.ready && !pod.deleted) pod.trouble = TroubleOf(object);
  return pod;
}

absl::StatusOr<ObjectList> ListAll(Client* client, const Address& address,
                                   const std::string& selector, const std::stop_token& stop) {
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<ObjectList> all = ListPages(client, address, selector, stop);
    if (!absl::IsOutOfRange(all.status())) return all;
    if (attempt == kMaxListAttempts) return absl::UnavailableError(all.status().message());
  }
}

absl::StatusOr<std::vector<Pod>> ListPods(Client* client, const std::string& name_space,
                                          const std::string& selector) {
  if (selector.empty()) return absl::InvalidArgumentError("pods are not listed without a selector");
  MUSTER_ASSIGN_OR_RETURN(const ObjectList all,
                          ListAll(client, {kPods, name_space, "", ""}, selector));
  std::vector<Pod> pods;
  for (const json& item : all.items) pods.push_back(PodOf(item));
  return pods;
}

absl::Status SetDeletionCost(Client* client, const std::string& name_space, const std::string& pod,
                             std::optional<int> cost) {
  const json value = cost.has_value() ? json(absl::StrCat(*cost)) : json(nullptr);
  const json patch = {{"metadata", {{"annotations", {{kDeletionCost, value}}}}}};
  const absl::Status status = client->Patch({kPods, name_space, pod, ""}, patch).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

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
