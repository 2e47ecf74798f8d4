// SPDX-License-Identifier: Apache-2.0
#include "tests/kubernetes/test_cluster.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/base/random.h"
#include "yaml-cpp/yaml.h"

namespace muster::kubernetes_test {
namespace {

using kubernetes::Resource;
using nlohmann::json;

const Resource kNamespaces{"api/v1", "namespaces"};
const Resource kServiceAccounts{"api/v1", "serviceaccounts"};
const Resource kRoles{"apis/rbac.authorization.k8s.io/v1", "roles"};
const Resource kRoleBindings{"apis/rbac.authorization.k8s.io/v1", "rolebindings"};

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr absl::Duration kLook = absl::Milliseconds(10);

[[noreturn]] void GiveUp(const std::string& why) {
  std::fprintf(stderr, "a cluster for a test: %s\n", why.c_str());
  std::abort();
}

template <typename T>
T OrGiveUp(absl::StatusOr<T> result) {
  if (!result.ok()) GiveUp(result.status().ToString());
  return *std::move(result);
}

std::string NewName() {
  const uint64_t id = base::RandomSeed();
  return absl::StrCat("muster-test-", absl::Hex(id, absl::kZeroPad16));
}

json FromYaml(const YAML::Node& node) {
  if (node.IsMap()) {
    json object = json::object();
    for (const auto& entry : node) object[entry.first.Scalar()] = FromYaml(entry.second);
    return object;
  }
  if (node.IsSequence()) {
    json array = json::array();
    for (const YAML::Node& item : node) array.push_back(FromYaml(item));
    return array;
  }
  return node.Scalar();
}

// Reads the Role that the documentation tells users to apply.
json PageRole() {
  std::ifstream stream(MUSTER_SCALING_PAGE);
  std::stringstream page;
  page << stream.rdbuf();
  const std::string text = page.str();
  const size_t begin = text.find("```yaml\n");
  const size_t end = text.find("```\n", begin + 1);
  if (begin == std::string::npos || end == std::string::npos) GiveUp("the page has no YAML");
  for (const YAML::Node& document : YAML::LoadAll(text.substr(begin + 8, end - begin - 8))) {
    if (document["kind"].Scalar() == "Role") return FromYaml(document);
  }
  GiveUp("the page has no Role");
}

bool Contains(const json& array, absl::string_view text) {
  for (const json& item : array) {
    if (item == std::string(text)) return true;
  }
  return false;
}

void TakeVerb(json* rule, absl::string_view verb) {
  json kept = json::array();
  for (const json& item : (*rule)["verbs"]) {
    if (item != std::string(verb)) kept.push_back(item);
  }
  (*rule)["verbs"] = kept;
}

json MakeRules(const std::vector<std::string>& workloads, absl::string_view lacks,
               absl::string_view resource) {
  json rules = PageRole()["rules"];
  for (json& rule : rules) {
    if (rule.contains("resourceNames")) rule["resourceNames"] = workloads;
    if (Contains(rule["resources"], resource)) TakeVerb(&rule, lacks);
  }
  return rules;
}

}  // namespace

bool HasCluster() { return std::getenv("MUSTER_TEST_KUBECONFIG") != nullptr; }

bool Eventually(const std::function<bool()>& holds) {
  const absl::Time end = absl::Now() + kPatience;
  while (!holds()) {
    if (absl::Now() >= end) return false;
    absl::SleepFor(kLook);
  }
  return true;
}

TestCluster::TestCluster()
    : admin_access_(OrGiveUp(kubernetes::KubeconfigAccess(std::getenv("MUSTER_TEST_KUBECONFIG")))),
      admin_(OrGiveUp(kubernetes::Client::Open(admin_access_, base::RealClock()))),
      name_space_(NewName()) {
  Create({kNamespaces, "", "", ""}, {{"metadata", {{"name", name_space_}}}});
  // Pods run as an account that the cluster makes for each namespace.
  if (!Eventually([this] {
        return admin_->Get({kServiceAccounts, name_space_, "default", ""}).ok();
      })) {
    GiveUp("its namespace gets no account");
  }
}

TestCluster::~TestCluster() { admin_->Delete({kNamespaces, "", name_space_, ""}).IgnoreError(); }

json TestCluster::Create(const kubernetes::Address& address, json object) {
  return OrGiveUp(admin_->Create(address, object));
}

kubernetes::Workload TestCluster::MakeWorkload(kubernetes::WorkloadKind kind,
                                               const std::string& name) {
  const json labels = {{"app", name}};
  json container = {{"name", "main"}, {"image", "registry.k8s.io/pause:3.10"}};
  json spec = {{"replicas", 0},
               {"selector", {{"matchLabels", labels}}},
               {"template",
                {{"metadata", {{"labels", labels}}},
                 {"spec", {{"containers", json::array({std::move(container)})}}}}}};
  const bool is_deployment = kind == kubernetes::WorkloadKind::kDeployment;
  if (!is_deployment) spec["podManagementPolicy"] = "Parallel";
  Create(
      {is_deployment ? kubernetes::kDeployments : kubernetes::kStatefulSets, name_space_, "", ""},
      {{"metadata", {{"name", name}}}, {"spec", std::move(spec)}});
  return {kind, name_space_, name};
}

kubernetes::Access TestCluster::AgentAccess(const std::vector<std::string>& workloads,
                                            absl::string_view lacks, absl::string_view resource) {
  const std::string account = absl::StrCat("agent-", ++accounts_);
  const json metadata = {{"metadata", {{"name", account}}}};
  Create({kServiceAccounts, name_space_, "", ""}, metadata);
  json role = metadata;
  role["rules"] = MakeRules(workloads, lacks, resource);
  Create({kRoles, name_space_, "", ""}, std::move(role));
  json binding = metadata;
  binding["roleRef"] = {
      {"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", account}};
  binding["subjects"] =
      json::array({{{"kind", "ServiceAccount"}, {"name", account}, {"namespace", name_space_}}});
  Create({kRoleBindings, name_space_, "", ""}, std::move(binding));

  kubernetes::Access access = admin_access_;
  access.certificate = {};
  access.key = {};
  access.token = {.file = dir_ / account};
  access.default_namespace = name_space_;
  std::ofstream(access.token.file) << NewToken(account);
  return access;
}

std::string TestCluster::NewToken(const std::string& account) {
  const json request = {{"apiVersion", "authentication.k8s.io/v1"},
                        {"kind", "TokenRequest"},
                        {"spec", {{"expirationSeconds", 3600}}}};
  return Create({kServiceAccounts, name_space_, account, "token"}, request)["status"]["token"];
}

kubernetes::Address TestCluster::PodAddress(const std::string& name) const {
  return {kubernetes::kPods, name_space_, name, ""};
}

void TestCluster::SetReady(const std::string& pod) {
  kubernetes::Address status = PodAddress(pod);
  status.subresource = "status";
  const json ready = {{"type", "Ready"}, {"status", "True"}};
  OrGiveUp(admin_->Patch(
      status, {{"status", {{"phase", "Running"}, {"conditions", json::array({ready})}}}}));
}

}  // namespace muster::kubernetes_test
