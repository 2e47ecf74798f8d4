// SPDX-License-Identifier: Apache-2.0

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

// Polls until `holds` is true. Returns false after 30 s, in which any cluster finishes the tests'
// changes.
bool Eventually(const std::function<bool()>& holds);

// Not thread-safe. A call that fails ends the process: a test cannot go on.
class TestCluster {
 public:
  TestCluster();
  // Removes the namespace, without waiting for the removal.
  ~TestCluster();
  TestCluster(const TestCluster&) = delete;
  TestCluster& operator=(const TestCluster&) = delete;

  const std::string& name_space() const { return name_space_; }
  // The administrator's client, which may do everything.
  kubernetes::Client* admin() { return admin_.get(); }
  const kubernetes::Access& admin_access() const { return admin_access_; }
  const os::TempDir& dir() const { return dir_; }

  // Makes a workload without replicas; its pods have the label app=NAME.
  kubernetes::Workload MakeWorkload(kubernetes::WorkloadKind kind, const std::string& name);

  // The access of an account bound to the Role of docs/kubernetes_scaling.md, for workloads of
  // these names; without the verb `lacks` on `resource`, if one is named.
  kubernetes::Access AgentAccess(const std::vector<std::string>& workloads,
                                 absl::string_view lacks = "", absl::string_view resource = "");

  // Returns a new token of the account. The access of AgentAccess names the file of its token.
  std::string NewToken(const std::string& account);

  kubernetes::Address PodAddress(const std::string& name) const;
  // Reports the pod ready, as a kubelet would.
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
