// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/acl.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "services/queue-gateway/auth/sas_time.h"
#include "services/queue-gateway/operations/record.h"
#include "services/queue-gateway/protocol/xml_reader.h"
#include "services/queue-gateway/protocol/xml_writer.h"

namespace muster::queue_gateway::operations {
namespace {

using auth::StoredPolicy;
using protocol::XmlElement;

std::string KeyOf(const queue::QueueId& queue) {
  return absl::StrCat("queue-gateway/acl/", queue.ToString());
}

// The incarnation of the queue, and the document.
std::pair<absl::string_view, absl::string_view> PartsOf(absl::string_view record) {
  return absl::StrSplit(record, absl::MaxSplits('\0', 1));
}

size_t CharactersOf(absl::string_view text) {
  size_t count = 0;
  for (size_t size = 1; !text.empty(); text.remove_prefix(size), ++count) {
    size = std::max<size_t>(base::Utf8Prefix(text), 1);
  }
  return count;
}

absl::Status Check(const StoredPolicy& policy) {
  const size_t characters = CharactersOf(policy.id);
  if (characters < 1 || characters > kMaxPolicyIdCharacters) {
    return absl::InvalidArgumentError("an Id has not 1 to 64 characters");
  }
  for (const std::string& time : {policy.start, policy.expiry}) {
    if (!time.empty() && !auth::ParseSasTime(time).has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(base::Quoted(time), " is no time"));
    }
  }
  if (policy.permission.find_first_not_of(kAclPermissions) != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("Permission ", base::Quoted(policy.permission), " is not of raup"));
  }
  return absl::OkStatus();
}

absl::StatusOr<StoredPolicy> ParsePolicy(const XmlElement& element) {
  if (element.name != "SignedIdentifier") {
    return absl::InvalidArgumentError(
        absl::StrCat(base::Quoted(element.name), " is no SignedIdentifier"));
  }
  StoredPolicy policy;
  policy.id = element.TextOf("Id").value_or("");
  if (const XmlElement* const access = element.Child("AccessPolicy")) {
    policy.start = access->TextOf("Start").value_or("");
    policy.expiry = access->TextOf("Expiry").value_or("");
    policy.permission = access->TextOf("Permission").value_or("");
  }
  MUSTER_RETURN_IF_ERROR(Check(policy));
  return policy;
}

}  // namespace

absl::StatusOr<std::vector<StoredPolicy>> ParseAcl(absl::string_view document) {
  MUSTER_ASSIGN_OR_RETURN(const XmlElement root, protocol::ParseXml(document));
  if (root.name != "SignedIdentifiers") {
    return absl::InvalidArgumentError(
        absl::StrCat(base::Quoted(root.name), " is no SignedIdentifiers"));
  }
  if (root.children.size() > kMaxPolicies) {
    return absl::InvalidArgumentError("there are more than five policies");
  }
  std::vector<StoredPolicy> policies;
  std::set<std::string> ids;
  for (const XmlElement& element : root.children) {
    MUSTER_ASSIGN_OR_RETURN(StoredPolicy policy, ParsePolicy(element));
    if (!ids.insert(policy.id).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two policies have the Id ", base::Quoted(policy.id)));
    }
    policies.push_back(std::move(policy));
  }
  return policies;
}

std::string WriteAcl(const std::vector<StoredPolicy>& policies) {
  protocol::XmlWriter xml;
  xml.Open("SignedIdentifiers");
  for (const StoredPolicy& policy : policies) {
    xml.Open("SignedIdentifier").Leaf("Id", policy.id).Open("AccessPolicy");
    if (!policy.start.empty()) xml.Leaf("Start", policy.start);
    if (!policy.expiry.empty()) xml.Leaf("Expiry", policy.expiry);
    if (!policy.permission.empty()) xml.Leaf("Permission", policy.permission);
    xml.Close().Close();
  }
  xml.Close();
  return std::move(xml).Finish();
}

absl::StatusOr<std::vector<StoredPolicy>> ReadAcl(const queue::QueueId& queue,
                                                  const Stores& stores) {
  MUSTER_ASSIGN_OR_RETURN(const queue::QueueExtent extent, stores.queues->Extent(queue));
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData record, stores.records->Get(KeyOf(queue)));
  const auto [incarnation, document] = PartsOf(record.data);
  if (record.version == sync::kAbsent || incarnation != extent.incarnation) {
    return std::vector<StoredPolicy>();
  }
  absl::StatusOr<std::vector<StoredPolicy>> policies = ParseAcl(document);
  if (policies.ok()) return policies;
  return absl::DataLossError(
      absl::StrCat("the ACL of queue '", queue.ToString(), "': ", policies.status().message()));
}

// The queue is looked at after the record that is replaced: if it is made again in between, its new
// record is another one, and the write begins anew.
absl::Status StoreAcl(const queue::QueueId& queue, const std::vector<StoredPolicy>& policies,
                      const Stores& stores) {
  const std::string document = WriteAcl(policies);
  return WriteRecord(
      stores.records, KeyOf(queue), [&](const sync::VersionedData&) -> absl::StatusOr<std::string> {
        MUSTER_ASSIGN_OR_RETURN(const queue::QueueExtent extent, stores.queues->Extent(queue));
        return absl::StrCat(extent.incarnation, absl::string_view("\0", 1), document);
      });
}

// Another client may have made the queue again, with an ACL. So the queue is looked at after the
// record: one whose queue is there by then stays, and one whose queue is not there belongs to none
// any more.
void ForgetAcl(const queue::QueueId& queue, const Stores& stores) {
  const absl::StatusOr<sync::VersionedData> record = stores.records->Get(KeyOf(queue));
  if (!record.ok() || record->version == sync::kAbsent) return;
  const absl::StatusOr<queue::QueueExtent> now = stores.queues->Extent(queue);
  if (now.ok() && now->incarnation == PartsOf(record->data).first) return;
  absl::Status forgotten = now.status();
  if (now.ok() || absl::IsNotFound(now.status())) {
    forgotten = stores.records->TryDelete(KeyOf(queue), record->version).status();
  }
  base::LogUnlessOk(base::kWarning, "the ACL of a deleted queue is left behind", forgotten,
                    {{"queue", queue.ToString()}});
}

}  // namespace muster::queue_gateway::operations
