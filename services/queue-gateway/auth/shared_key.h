// SPDX-License-Identifier: Apache-2.0

// Shared keys: a request is signed by HMAC-SHA256 with a key of its account, and carries
//
//   Authorization: SharedKey ACCOUNT:SIGNATURE         or SharedKeyLite
//
// The signature is over a text made of the request. SharedKey, version 2009-09-19 and later:
//
//   GET                               the method
//   (eleven lines)                    Content-Language, Content-Encoding, Content-Length (empty
//                                     for 0 from version 2015-02-21), Content-MD5, Content-Type,
//                                     Date, If-Modified-Since, If-Match, If-None-Match,
//                                     If-Unmodified-Since, Range: their values, or empty
//   x-ms-date:Mon, 27 Oct 2008 …      the x-ms-* headers by name
//   x-ms-version:2025-05-05
//   /sally/sally/jobs                 "/", the account, and the path as sent (in path style with
//   comp:metadata                     the account in it); the parameters by name, decoded
//
// SharedKeyLite, and SharedKey without x-ms-version as the service had it in 2008:
//
//   PUT                               the method
//   (three lines)                     Content-MD5, Content-Type, Date
//   x-ms-date:Mon, 27 Oct 2008 …
//   /sally/jobs?comp=metadata         of the parameters, comp only
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "services/queue-gateway/auth/accounts.h"
#include "services/queue-gateway/auth/request.h"
#include "services/queue-gateway/auth/verdict.h"

namespace muster::queue_gateway::auth {

// What an Authorization header holds.
struct Credential {
  std::string scheme;      // lower case: "sharedkey", "sharedkeylite", "bearer"
  std::string parameters;  // what follows, without white space around it
};

// InvalidArgument: it has no scheme, no parameters, or more than kMaxAuthorizationBytes.
absl::StatusOr<Credential> ParseAuthorization(absl::string_view value);

struct SharedKeySignature {
  std::string account;
  std::string mac;  // the bytes that base64 stood for; empty: it was no base64
};

// Of a credential's parameters, ACCOUNT:SIGNATURE; white space may follow the colon.
// InvalidArgument: they have another form.
absl::StatusOr<SharedKeySignature> ParseSharedKeySignature(absl::string_view parameters);

// How the request is signed: kSharedKey, kSharedKeyLite or kSharedKey2008.
Scheme SharedKeySchemeOf(const Credential& credential, const SignedRequest& request);

// The texts that a client may have signed, the usual one first; at most kMaxStringsToSign. Clients
// read the rules in different ways where a request has what few requests have:
//   - Content-Language and Content-Encoding may change places;
//   - Date may be left empty where x-ms-date takes its place;
//   - x-ms-* headers may be sorted by bytes, or by a collation in which dashes count last;
//   - runs of white space in their values may be one blank;
//   - for the secondary location, the path may be without "-secondary".
// Each of these texts covers the whole request (a Date that x-ms-date replaces says nothing).
std::vector<std::string> StringsToSign(const SignedRequest& request, Scheme scheme);
inline constexpr size_t kMaxStringsToSign = 32;

// OK: x-ms-date, or else Date, is within kReplayWindow of `now`, the bounds included.
// Unauthenticated: it is not, it is no date, or the request has none.
absl::Status CheckDate(const SignedRequest& request, absl::Time now);

// Checks the date, and the signature against each key of the account.
Verdict CheckSharedKey(const SignedRequest& request, const Credential& credential,
                       const Account& account, absl::Time now);

}  // namespace muster::queue_gateway::auth
