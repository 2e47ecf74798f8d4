// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/mac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "absl/strings/escaping.h"
#include "muster/base/check.h"

namespace muster::queue_gateway::auth {

std::string HmacSha256(absl::string_view key, absl::string_view text) {
  std::string mac(EVP_MAX_MD_SIZE, '\0');
  unsigned int bytes = 0;
  const auto* const data = reinterpret_cast<const unsigned char*>(text.data());
  const void* const made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), data,
                                text.size(), reinterpret_cast<unsigned char*>(mac.data()), &bytes);
  MUSTER_CHECK(made != nullptr, "OpenSSL has no HMAC-SHA256");
  mac.resize(bytes);
  return mac;
}

bool EqualInConstantTime(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// Abseil's decoders take more than one text for the same bytes; only the one that the encoder makes
// is right.

std::optional<std::string> DecodeBase64(absl::string_view text) {
  std::string bytes;
  if (!absl::Base64Unescape(text, &bytes) || absl::Base64Escape(bytes) != text) return std::nullopt;
  return bytes;
}

std::optional<std::string> DecodeBase64Url(absl::string_view text) {
  std::string bytes;
  if (!absl::WebSafeBase64Unescape(text, &bytes)) return std::nullopt;
  if (absl::WebSafeBase64Escape(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace muster::queue_gateway::auth
