// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/sas.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "services/queue-gateway/auth/ip_range.h"
#include "services/queue-gateway/auth/limits.h"
#include "services/queue-gateway/auth/mac.h"
#include "services/queue-gateway/auth/permissions.h"
#include "services/queue-gateway/auth/sas_time.h"
#include "services/queue-gateway/auth/user_delegation.h"

namespace muster::queue_gateway::auth {

namespace {

constexpr absl::string_view kFirstVersion = "2012-02-12";
constexpr absl::string_view kFirstWithService = "2015-02-21";  // "/queue" in the resource
constexpr absl::string_view kFirstWithAddress = "2015-04-05";  // sip and spr; account SAS
constexpr absl::string_view kFirstWithDelegation = "2025-07-05";
constexpr absl::string_view kFirstWithScope = "2020-12-06";  // ses

struct Parameter {
  absl::string_view name;
  std::string SasToken::*member;
};

constexpr std::array<Parameter, 19> kParameters = {{{"sp", &SasToken::permissions},
                                                    {"st", &SasToken::start},
                                                    {"se", &SasToken::expiry},
                                                    {"si", &SasToken::identifier},
                                                    {"sip", &SasToken::ip},
                                                    {"spr", &SasToken::protocol},
                                                    {"sv", &SasToken::version},
                                                    {"ss", &SasToken::services},
                                                    {"srt", &SasToken::resource_types},
                                                    {"ses", &SasToken::encryption_scope},
                                                    {"skoid", &SasToken::key_object_id},
                                                    {"sktid", &SasToken::key_tenant_id},
                                                    {"skt", &SasToken::key_start},
                                                    {"ske", &SasToken::key_expiry},
                                                    {"sks", &SasToken::key_service},
                                                    {"skv", &SasToken::key_version},
                                                    {"skdutid", &SasToken::delegated_tenant},
                                                    {"sduoid", &SasToken::delegated_user},
                                                    {"sig", &SasToken::mac}}};

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

// The value of a parameter; nullopt: it is not there.
absl::StatusOr<std::optional<std::string>> FindOnce(const SignedRequest& request,
                                                    absl::string_view wanted) {
  std::optional<std::string> found;
  for (const auto& [name, value] : request.query) {
    if (absl::AsciiStrToLower(name) != wanted) continue;
    if (found.has_value()) return Wrong(absl::StrCat(wanted, " is there twice"));
    if (std::any_of(value.begin(), value.end(), absl::ascii_iscntrl)) {
      return Wrong(absl::StrCat(wanted, " has a control character"));
    }
    found = value;
  }
  return found;
}

absl::Status CheckVersion(const SasToken& token) {
  const std::optional<absl::Time> date = ParseSasTime(token.version);
  constexpr size_t kDateBytes = 10;
  if (!date.has_value() || token.version.size() != kDateBytes) {
    return Wrong("sv is missing or is no version");
  }
  if (token.version < (token.is_delegation ? kFirstWithDelegation
                       : token.is_account  ? kFirstWithAddress
                                           : kFirstVersion)) {
    return Wrong("sv is a version without this kind of signature");
  }
  const bool signs_address = token.version >= kFirstWithAddress;
  if (!signs_address && (!token.ip.empty() || !token.protocol.empty())) {
    return Wrong("sv is a version without sip and spr");
  }
  return absl::OkStatus();
}

absl::Status CheckKind(const SasToken& token) {
  if (token.is_account && token.is_delegation)
    return Wrong("a user delegation SAS has no ss or srt");
  if (token.is_account && !token.identifier.empty()) return Wrong("an account SAS has no si");
  if (token.is_delegation && !token.identifier.empty()) {
    return Wrong("a user delegation SAS has no si");
  }
  return absl::OkStatus();
}

}  // namespace

bool HasSas(const SignedRequest& request) {
  return std::any_of(request.query.begin(), request.query.end(), [](const auto& parameter) {
    return absl::AsciiStrToLower(parameter.first) == "sig";
  });
}

absl::StatusOr<SasToken> ParseSas(const SignedRequest& request) {
  SasToken token;
  for (const Parameter& parameter : kParameters) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<std::string> value, FindOnce(request, parameter.name));
    token.*parameter.member = std::move(value).value_or("");
  }
  token.is_account = !token.services.empty() || !token.resource_types.empty();
  token.is_delegation = !token.key_object_id.empty();
  const std::optional<std::string> mac = DecodeBase64(token.mac);
  if (!mac.has_value() || mac->empty()) return Wrong("sig is missing or is no base64");
  token.mac = *mac;
  MUSTER_RETURN_IF_ERROR(CheckVersion(token));
  MUSTER_RETURN_IF_ERROR(CheckKind(token));
  return token;
}

std::string SasStringToSign(const SasToken& token, absl::string_view account,
                            absl::string_view queue) {
  std::vector<std::string> fields;
  if (token.is_account) {
    fields = {std::string(account), token.permissions, token.services, token.resource_types,
              token.start,          token.expiry,      token.ip,       token.protocol,
              token.version};
    if (token.version >= kFirstWithScope) fields.push_back(token.encryption_scope);
    fields.emplace_back();
  } else if (token.is_delegation) {
    fields = {token.permissions,
              token.start,
              token.expiry,
              absl::StrCat("/queue/", account, "/", queue),
              token.key_object_id,
              token.key_tenant_id,
              token.key_start,
              token.key_expiry,
              token.key_service,
              token.key_version,
              token.delegated_tenant,
              token.delegated_user,
              token.ip,
              token.protocol,
              token.version};
  } else {
    const absl::string_view service = token.version >= kFirstWithService ? "/queue/" : "/";
    fields = {token.permissions, token.start, token.expiry,
              absl::StrCat(service, account, "/", queue), token.identifier};
    if (token.version >= kFirstWithAddress) {
      fields.push_back(token.ip);
      fields.push_back(token.protocol);
    }
    fields.push_back(token.version);
  }
  return absl::StrJoin(fields, "\n");
}

namespace {

Verdict NotAuthenticated(absl::string_view detail) {
  return Refuse(errors::ErrorCode::kAuthenticationFailed, detail);
}

// The key that signs the SAS, of a key of the account.
std::string SigningKey(const SasToken& token, const Account& account, const std::string& key) {
  if (!token.is_delegation) return key;
  return UserDelegationKey({{token.key_object_id, token.key_tenant_id},
                            token.key_start,
                            token.key_expiry,
                            token.key_service,
                            token.key_version},
                           account.name, key);
}

bool IsSignedByKeyOf(const Account& account, const SasToken& token, absl::string_view text) {
  bool found = false;
  for (const std::string& key : account.keys) {
    found |= EqualInConstantTime(HmacSha256(SigningKey(token, account, key), text), token.mac);
  }
  return found;
}

// Takes over what the stored policy says. What both say is refused, or a SAS could widen its
// policy.
absl::Status ApplyPolicy(const StoredPolicy& policy, SasToken* token) {
  const std::array<std::pair<const std::string*, std::string*>, 3> members = {
      {{&policy.permission, &token->permissions},
       {&policy.start, &token->start},
       {&policy.expiry, &token->expiry}}};
  for (const auto& [stored, own] : members) {
    if (stored->empty()) continue;
    if (!own->empty()) return Wrong("the SAS repeats what its stored access policy says");
    *own = *stored;
  }
  return absl::OkStatus();
}

Verdict FindAndApplyPolicy(const PolicyReader& policies, SasToken* token) {
  const absl::StatusOr<std::vector<StoredPolicy>> stored = policies();
  // No queue can have that name, or none has it.
  const bool is_none =
      absl::IsNotFound(stored.status()) || absl::IsInvalidArgument(stored.status());
  if (!stored.ok() && !is_none) {
    base::LogUnlessOk(base::kWarning, "cannot read the access policies of a queue",
                      stored.status());
    return Refuse(errors::ErrorCode::kInternalError, "");
  }
  if (stored.ok()) {
    for (const StoredPolicy& policy : *stored) {
      if (policy.id != token->identifier) continue;
      const absl::Status status = ApplyPolicy(policy, token);
      return status.ok() ? Verdict() : NotAuthenticated(status.message());
    }
  }
  return NotAuthenticated("the queue has no stored access policy of the SAS's identifier");
}

// "" is no set.
bool IsSetOf(absl::string_view letters, absl::string_view allowed) {
  if (letters.empty() || letters.find_first_not_of(allowed) != absl::string_view::npos) {
    return false;
  }
  for (size_t i = 0; i < letters.size(); ++i) {
    if (letters.find(letters[i], i + 1) != absl::string_view::npos) return false;
  }
  return true;
}

absl::Status CheckForm(const SasToken& token) {
  constexpr absl::string_view kQueuePermissions = "raup";
  // Letters that mean something to other services may stand beside those of the queue service.
  constexpr absl::string_view kAnyPermissions = "abcdefghijklmnopqrstuvwxyz";
  if (!IsSetOf(token.permissions, token.is_account ? kAnyPermissions : kQueuePermissions)) {
    return Wrong("sp is missing or is no set of permissions");
  }
  if (token.is_account && !IsSetOf(token.services, "bqtf"))
    return Wrong("ss is no set of services");
  if (token.is_account && !IsSetOf(token.resource_types, "sco")) {
    return Wrong("srt is no set of resource types");
  }
  if (token.is_delegation && token.key_service != "q") {
    return Wrong("sks is not q, for queues");
  }
  // Such a SAS is good only together with a token of that user.
  if (token.is_delegation && (!token.delegated_tenant.empty() || !token.delegated_user.empty())) {
    return Wrong("a SAS for one user alone, with skdutid or sduoid, is not known here");
  }
  if (!token.ip.empty() && !ParseIpRange(token.ip).has_value()) {
    return Wrong("sip is no address and no range");
  }
  if (!token.protocol.empty() && token.protocol != "https" && token.protocol != "https,http") {
    return Wrong("spr is neither https nor https,http");
  }
  return absl::OkStatus();
}

absl::Status CheckKeyTime(const SasToken& token, absl::Time now) {
  if (!token.is_delegation) return absl::OkStatus();
  const std::optional<absl::Time> start = ParseSasTime(token.key_start);
  const std::optional<absl::Time> expiry = ParseSasTime(token.key_expiry);
  if (!start.has_value() || !expiry.has_value()) return Wrong("skt or ske is no time");
  if (*start <= now && now < *expiry) return absl::OkStatus();
  return Wrong("the key of the SAS is not valid now");
}

absl::Status CheckTime(const SasToken& token, absl::Time now) {
  const std::optional<absl::Time> expiry = ParseSasTime(token.expiry);
  if (!expiry.has_value()) return Wrong("se is missing or is no time");
  absl::Time start = absl::InfinitePast();
  if (!token.start.empty()) {
    const std::optional<absl::Time> parsed = ParseSasTime(token.start);
    if (!parsed.has_value()) return Wrong("st is no time");
    start = *parsed;
  }
  if (start <= now && now < *expiry) return CheckKeyTime(token, now);
  return Wrong(absl::StrCat("the SAS is not valid now: start ", base::Quoted(token.start),
                            ", expiry ", base::Quoted(token.expiry), ", now ",
                            absl::FormatTime(absl::RFC3339_sec, now, absl::UTCTimeZone())));
}

bool IsAddressAllowed(const SasToken& token, const SignedRequest& request) {
  if (token.ip.empty()) return true;
  const std::optional<IpRange> range = ParseIpRange(token.ip);
  const std::optional<IpAddress> peer = ParseIpAddress(request.peer_ip);
  return range.has_value() && peer.has_value() && range->Contains(*peer);
}

// The first thing that the SAS does not allow.
std::optional<errors::ErrorCode> Authorize(const SasToken& token, const SignedRequest& request,
                                           Operation operation) {
  if (token.protocol == "https" && !request.is_https) {
    return errors::ErrorCode::kAuthorizationProtocolMismatch;
  }
  if (!IsAddressAllowed(token, request)) return errors::ErrorCode::kAuthorizationSourceIpMismatch;
  const Needs needs = NeedsOf(operation);
  if (!token.is_account) {
    return HasAnyOf(token.permissions, needs.queue_permissions)
               ? std::nullopt
               : std::optional(errors::ErrorCode::kAuthorizationPermissionMismatch);
  }
  if (!HasAnyOf(token.services, "q")) return errors::ErrorCode::kAuthorizationServiceMismatch;
  if (token.resource_types.find(needs.resource_type) == std::string::npos) {
    return errors::ErrorCode::kAuthorizationResourceTypeMismatch;
  }
  return HasAnyOf(token.permissions, needs.account_permissions)
             ? std::nullopt
             : std::optional(errors::ErrorCode::kAuthorizationPermissionMismatch);
}

}  // namespace

Verdict CheckSas(const SignedRequest& request, Operation operation, const Account& account,
                 const PolicyReader& policies, absl::Time now) {
  absl::StatusOr<SasToken> token = ParseSas(request);
  if (!token.ok()) return NotAuthenticated(token.status().message());
  const std::string text = SasStringToSign(*token, account.name, request.queue);
  if (!IsSignedByKeyOf(account, *token, text)) {
    return NotAuthenticated(
        absl::StrCat("the signature is not that of this SAS; the server signed: '", text, "'"));
  }
  if (!token->identifier.empty()) {
    Verdict verdict = FindAndApplyPolicy(policies, &*token);
    if (!verdict.ok()) return verdict;
  }
  absl::Status status = CheckForm(*token);
  if (status.ok()) status = CheckTime(*token, now);
  if (!status.ok()) return NotAuthenticated(status.message());

  const std::optional<errors::ErrorCode> refused = Authorize(*token, request, operation);
  Verdict verdict = refused.has_value() ? Refuse(*refused, "") : Verdict();
  verdict.scheme = token->is_account      ? Scheme::kAccountSas
                   : token->is_delegation ? Scheme::kUserDelegationSas
                                          : Scheme::kServiceSas;
  verdict.service_version = token->version;
  return verdict;
}

}  // namespace muster::queue_gateway::auth
