// TestCluster: a namespace of a real cluster for one test, with what a scaling agent finds there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/kubernetes/access.h"
#include "muster/kubernetes/client.h"
#include "muster/kubernetes/workload.h"
#include "muster/os/temp_dir.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes_test {

// Whether there is a cluster to test on: MUSTER_TEST_KUBECONFIG names its kubeconfig.
bool HasCluster();

// Looks again and again until `holds` is true. False: it was not within 30 s, in which any cluster
// has done what a test asks of it.
bool Eventually(const std::function<bool()>& holds);

// Not thread-safe. Calls that do not succeed end the process: a test cannot go on.
class TestCluster {
 public:
  TestCluster();
  // Removes the namespace, and does not wait for that.
  ~TestCluster();
  TestCluster(const TestCluster&) = delete;
  TestCluster& operator=(const TestCluster&) = delete;

  const std::string& name_space() const { return name_space_; }
  // May do all.
  kubernetes::Client* admin() { return admin_.get(); }
  const kubernetes::Access& admin_access() const { return admin_access_; }
  const os::TempDir& dir() const { return dir_; }

  // With no replicas; its pods have the label app=NAME.
  kubernetes::Workload MakeWorkload(kubernetes::WorkloadKind kind, const std::string& name);

  // As an account that the Role of docs/kubernetes_scaling.md is bound to, for workloads of these
  // names; without the verb `lacks` on `resource`, if one is named.
  kubernetes::Access AgentAccess(const std::vector<std::string>& workloads,
                                 absl::string_view lacks = "", absl::string_view resource = "");

  // A new token of the agent's account; and where AgentAccess has the current one.
  std::string NewToken(const std::string& account);

  kubernetes::Address PodAddress(const std::string& name) const;
  // As a kubelet would say it.
  void SetReady(const std::string& pod);

 private:
  nlohmann::json Create(const kubernetes::Address& address, nlohmann::json object);

  const os::TempDir dir_;
  const kubernetes::Access admin_access_;
  const std::unique_ptr<kubernetes::Client> admin_;
  const std::string name_space_;
  int accounts_ = 0;
};

}  // namespace muster::kubernetes_test
