// SPDX-License-Identifier: Apache-2.0

// Shared access signatures: a query that holds what it allows, and an HMAC of that by a key of the
// account.
//
// A service SAS is about one queue. It signs, joined by "\n":
//
//   sp, st, se, "/queue/ACCOUNT/QUEUE", si, sip, spr, sv
//
// before version 2015-04-05 without sip and spr, and before 2015-02-21 without "/queue". With si it
// names a stored access policy of the queue; what the policy says, the SAS must leave out.
//
// An account SAS is about services and kinds of resources. It signs, each followed by "\n":
//
//   ACCOUNT, sp, ss, srt, st, se, sip, spr, sv, and from version 2020-12-06 ses
//
// A user delegation SAS (version 2025-07-05 on) is about one queue, and signed by the key that
// user_delegation.h makes of the account's. It signs, joined by "\n":
//
//   sp, st, se, "/queue/ACCOUNT/QUEUE", skoid, sktid, skt, ske, sks, skv, skdutid, sduoid, sip,
//   spr, sv
//
// A SAS is valid from st, if it has one, until just before se.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "services/queue-gateway/auth/accounts.h"
#include "services/queue-gateway/auth/request.h"
#include "services/queue-gateway/auth/verdict.h"

namespace muster::queue_gateway::auth {

// A stored access policy: a signed identifier of a queue's ACL. Members are as stored; an empty one
// is left to the SAS.
struct StoredPolicy {
  std::string id;
  std::string start;       // as ParseSasTime (sas_time.h) reads it
  std::string expiry;      // likewise
  std::string permission;  // of "raup"
};

// Reads the stored access policies of the request's queue. NotFound: there is no such queue.
using PolicyReader = std::function<absl::StatusOr<std::vector<StoredPolicy>>()>;

// A SAS, read and not judged. Members are empty where the query has none.
struct SasToken {
  bool is_account = false;       // it has ss or srt
  bool is_delegation = false;    // it has skoid
  std::string permissions;       // sp
  std::string start;             // st
  std::string expiry;            // se
  std::string identifier;        // si
  std::string ip;                // sip
  std::string protocol;          // spr
  std::string version;           // sv
  std::string services;          // ss
  std::string resource_types;    // srt
  std::string encryption_scope;  // ses
  std::string key_object_id;     // skoid
  std::string key_tenant_id;     // sktid
  std::string key_start;         // skt
  std::string key_expiry;        // ske
  std::string key_service;       // sks
  std::string key_version;       // skv
  std::string delegated_tenant;  // skdutid
  std::string delegated_user;    // sduoid
  std::string mac;               // sig: the bytes that base64 stood for
};

// Whether the query holds a SAS: it has a sig.
bool HasSas(const SignedRequest& request);

// Letter case does not count in the names of parameters. InvalidArgument, which says what is wrong:
// a parameter of the SAS is there twice or has a control character, sig or sv is missing or is
// none, the kind or the version of the SAS is not known.
absl::StatusOr<SasToken> ParseSas(const SignedRequest& request);

// What a SAS of `token`'s kind and version signs.
std::string SasStringToSign(const SasToken& token, absl::string_view account,
                            absl::string_view queue);

// Checks the signature by each key of the account, then the time, the protocol, the address and
// what `operation` needs. Calls `policies` after the signature, and only if the SAS names one.
Verdict CheckSas(const SignedRequest& request, Operation operation, const Account& account,
                 const PolicyReader& policies, absl::Time now);

}  // namespace muster::queue_gateway::auth
