// SPDX-License-Identifier: Apache-2.0

// User delegation keys: what a caller with a bearer token gets, to sign shared access signatures
// with it that name the caller.
//
// Nothing is kept of a key: its bytes are an HMAC by the account's key over what it is for, which
// the SAS repeats. So every gateway with the account's keys knows all keys, and a key of the
// account that is replaced ends those that were made with it.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace muster::queue_gateway::auth {

// Who a bearer token is about. Members are printable; "": the token has no such claim.
struct Identity {
  std::string object_id;  // oid
  std::string tenant_id;  // tid
};

// What a key is for. Members are as the parameters of a SAS have them.
struct UserDelegation {
  Identity user;        // skoid, sktid
  std::string start;    // skt, as ParseSasTime (sas_time.h) reads it
  std::string expiry;   // ske, likewise
  std::string service;  // sks: "q"
  std::string version;  // skv
};

// The 32 bytes of the key for `delegation` in the account, made with one of the account's keys. No
// member has a line feed.
std::string UserDelegationKey(const UserDelegation& delegation, absl::string_view account,
                              absl::string_view account_key);

}  // namespace muster::queue_gateway::auth
