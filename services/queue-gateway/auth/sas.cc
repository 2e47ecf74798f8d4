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

namespace muster::queue_gateway::auth {

namespace {

constexpr absl::string_view kFirstVersion = "2012-02-12";
constexpr absl::string_view kFirstWithService = "2015-02-21";  // "/queue" in the resource
constexpr absl::string_view kFirstWithAddress = "2015-04-05";  // sip and spr; account SAS
constexpr absl::string_view kFirstWithScope = "2020-12-06";    // ses

struct Parameter {
  absl::string_view name;
  std::string SasToken::*member;
};

constexpr std::array<Parameter, 11> kParameters = {{{"sp", &SasToken::permissions},
                                                    {"st", &SasToken::start},
                                                    {"se", &SasToken::expiry},
                                                    {"si", &SasToken::identifier},
                                                    {"sip", &SasToken::ip},
                                                    {"spr", &SasToken::protocol},
                                                    {"sv", &SasToken::version},
                                                    {"ss", &SasToken::services},
                                                    {"srt", &SasToken::resource_types},
                                                    {"ses", &SasToken::encryption_scope},
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
  if (token.version < (token.is_account ? kFirstWithAddress : kFirstVersion)) {
    return Wrong("sv is a version without this kind of signature");
  }
  const bool signs_address = token.version >= kFirstWithAddress;
  if (!signs_address && (!token.ip.empty() || !token.protocol.empty())) {
    return Wrong("sv is a version without sip and spr");
  }
  return absl::OkStatus();
}

// A user delegation SAS is signed by a key that an identity provider vouches for. The gateway hands
// out no such keys.
absl::Status CheckKind(const SignedRequest& request, const SasToken& token) {
  MUSTER_ASSIGN_OR_RETURN(const auto delegating, FindOnce(request, "skoid"));
  if (delegating.has_value()) return Wrong("a user delegation SAS is not known here");
  if (token.is_account && !token.identifier.empty()) return Wrong("an account SAS has no si");
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
  const std::optional<std::string> mac = DecodeBase64(token.mac);
  if (!mac.has_value() || mac->empty()) return Wrong("sig is missing or is no base64");
  token.mac = *mac;
  MUSTER_RETURN_IF_ERROR(CheckVersion(token));
  MUSTER_RETURN_IF_ERROR(CheckKind(request, token));
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
  return Refuse(VerdictCode::kAuthenticationFailed, detail);
}

bool IsSignedByKeyOf(const Account& account, absl::string_view text, absl::string_view mac) {
  bool found = false;
  for (const std::string& key : account.keys) {
    found |= EqualInConstantTime(HmacSha256(key, text), mac);
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
  if (!stored.ok() && !absl::IsNotFound(stored.status())) {
    base::LogUnlessOk(base::kWarning, "cannot read the access policies of a queue",
                      stored.status());
    return Refuse(VerdictCode::kInternalError, "");
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
  if (!token.ip.empty() && !ParseIpRange(token.ip).has_value()) {
    return Wrong("sip is no address and no range");
  }
  if (!token.protocol.empty() && token.protocol != "https" && token.protocol != "https,http") {
    return Wrong("spr is neither https nor https,http");
  }
  return absl::OkStatus();
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
  if (start <= now && now < *expiry) return absl::OkStatus();
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
VerdictCode Authorize(const SasToken& token, const SignedRequest& request, Operation operation) {
  if (token.protocol == "https" && !request.is_https) {
    return VerdictCode::kAuthorizationProtocolMismatch;
  }
  if (!IsAddressAllowed(token, request)) return VerdictCode::kAuthorizationSourceIpMismatch;
  const Needs needs = NeedsOf(operation);
  if (!token.is_account) {
    return HasAnyOf(token.permissions, needs.queue_permissions)
               ? VerdictCode::kOk
               : VerdictCode::kAuthorizationPermissionMismatch;
  }
  if (!HasAnyOf(token.services, "q")) return VerdictCode::kAuthorizationServiceMismatch;
  if (token.resource_types.find(needs.resource_type) == std::string::npos) {
    return VerdictCode::kAuthorizationResourceTypeMismatch;
  }
  return HasAnyOf(token.permissions, needs.account_permissions)
             ? VerdictCode::kOk
             : VerdictCode::kAuthorizationPermissionMismatch;
}

}  // namespace

Verdict CheckSas(const SignedRequest& request, Operation operation, const Account& account,
                 const PolicyReader& policies, absl::Time now) {
  absl::StatusOr<SasToken> token = ParseSas(request);
  if (!token.ok()) return NotAuthenticated(token.status().message());
  const std::string text = SasStringToSign(*token, account.name, request.queue);
  if (!IsSignedByKeyOf(account, text, token->mac)) {
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

  const VerdictCode code = Authorize(*token, request, operation);
  Verdict verdict = code == VerdictCode::kOk ? Verdict() : Refuse(code, "");
  verdict.scheme = token->is_account ? Scheme::kAccountSas : Scheme::kServiceSas;
  verdict.service_version = token->version;
  return verdict;
}

}  // namespace muster::queue_gateway::auth
