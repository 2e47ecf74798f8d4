// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/status.h"
#include "services/queue-gateway/auth/sas_time.h"
#include "services/queue-gateway/auth/user_delegation.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/protocol/reply.h"
#include "services/queue-gateway/protocol/xml_reader.h"
#include "services/queue-gateway/protocol/xml_writer.h"

namespace muster::queue_gateway::operations {
namespace {

// Azure's bound, from now on.
constexpr absl::Duration kMaxLife = absl::Hours(7 * 24);

struct Life {
  absl::Time start;
  absl::Time expiry;
};

absl::StatusOr<absl::Time> TimeOf(const protocol::XmlElement& element, absl::string_view name) {
  const std::optional<absl::Time> time = auth::ParseSasTime(element.TextOf(name).value_or(""));
  if (time.has_value()) return *time;
  return absl::InvalidArgumentError(absl::StrCat("<", name, "> is missing or is no time"));
}

absl::StatusOr<Life> ReadLife(absl::string_view document, absl::Time now) {
  MUSTER_ASSIGN_OR_RETURN(const protocol::XmlElement root, protocol::ParseXml(document));
  if (root.name != "KeyInfo") return absl::InvalidArgumentError("it is no <KeyInfo>");
  // The service's SDK for .NET leaves out a start that its program does not name: it is now.
  Life life;
  life.start = absl::FromUnixSeconds(absl::ToUnixSeconds(now));
  if (!root.TextOf("Start").value_or("").empty()) {
    MUSTER_ASSIGN_OR_RETURN(life.start, TimeOf(root, "Start"));
  }
  MUSTER_ASSIGN_OR_RETURN(life.expiry, TimeOf(root, "Expiry"));
  if (life.expiry <= life.start || life.expiry <= now) {
    return absl::InvalidArgumentError("<Expiry> is not after <Start> and now");
  }
  if (life.expiry > now + kMaxLife) {
    return absl::InvalidArgumentError("<Expiry> is more than seven days from now");
  }
  return life;
}

std::string Iso(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace

Outcome GetUserDelegationKey(const Call& call, const Stores& stores) {
  if (call.account == nullptr) return protocol::ErrorCode::kResourceNotFound;
  const absl::StatusOr<Life> life = ReadLife(call.http.body, stores.clock->Now());
  if (!life.ok()) {
    return protocol::Error(protocol::ErrorCode::kInvalidXmlDocument,
                           {{"Reason", std::string(life.status().message())}});
  }
  const auth::UserDelegation delegation = {call.caller, Iso(life->start), Iso(life->expiry), "q",
                                           call.version};
  const std::string key =
      auth::UserDelegationKey(delegation, call.account->name, call.account->keys.front());
  protocol::XmlWriter xml;
  xml.Open("UserDelegationKey").Leaf("SignedOid", delegation.user.object_id);
  xml.Leaf("SignedTid", delegation.user.tenant_id).Leaf("SignedStart", delegation.start);
  xml.Leaf("SignedExpiry", delegation.expiry).Leaf("SignedService", delegation.service);
  xml.Leaf("SignedVersion", delegation.version).Leaf("Value", absl::Base64Escape(key)).Close();
  return protocol::Xml(200, std::move(xml).Finish());
}

}  // namespace muster::queue_gateway::operations
