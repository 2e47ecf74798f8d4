// SPDX-License-Identifier: Apache-2.0

// The value of an Authorization header. A bearer token is judged by a server that checks no
// signatures, so that all its claims are read.
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "muster/base/clock.h"
#include "services/queue-gateway/auth/bearer.h"
#include "services/queue-gateway/auth/limits.h"
#include "services/queue-gateway/auth/shared_key.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using namespace queue_gateway::auth;  // what is under test

void CheckSignature(const Credential& credential) {
  const auto signature = ParseSharedKeySignature(credential.parameters);
  if (!signature.ok()) return;
  Must(!signature->account.empty(), "a signature has an account");
  Must(signature->account.find(':') == std::string::npos, "an account ends at the first colon");
  if (signature->mac.empty()) return;
  const std::string encoded = absl::Base64Escape(signature->mac);
  Must(absl::EndsWith(credential.parameters, encoded), "base64 has one form");
}

void CheckToken(const Credential& credential) {
  static const BearerVerifier* const verifier =
      BearerVerifier::Open({}, base::RealClock())->release();
  const absl::Status status = verifier->Check(credential.parameters, "sally").status();
  Must(status.ok() || absl::IsInvalidArgument(status) || absl::IsUnauthenticated(status),
       "a token is valid, not valid, or none");
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  const auto credential = ParseAuthorization(Text(data, size));
  if (!credential.ok()) {
    Must(absl::IsInvalidArgument(credential.status()), "a wrong header is InvalidArgument");
    return 0;
  }
  Must(!credential->scheme.empty() && !credential->parameters.empty(), "a credential is whole");
  Must(credential->scheme == absl::AsciiStrToLower(credential->scheme), "a scheme is lower case");
  Must(absl::StripAsciiWhitespace(credential->parameters) == credential->parameters,
       "parameters have no white space around them");
  CheckSignature(*credential);
  CheckToken(*credential);
  return 0;
}
