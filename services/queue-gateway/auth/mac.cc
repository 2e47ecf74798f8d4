// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/mac.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <memory>

#include "absl/strings/escaping.h"
#include "muster/base/check.h"

namespace muster::queue_gateway::auth {

namespace {

// OpenSSL finds its algorithms by name each time that a context is made. For a text as short as a
// request's that costs more than the hash.
class HmacContext {
 public:
  HmacContext() {
    const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> hmac(
        EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr), EVP_MAC_free);
    context_.reset(EVP_MAC_CTX_new(hmac.get()));
    char digest[] = OSSL_DIGEST_NAME_SHA2_256;
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end()};
    MUSTER_CHECK(context_ != nullptr && EVP_MAC_CTX_set_params(context_.get(), parameters) == 1,
                 "OpenSSL has no HMAC-SHA256");
  }

  std::string Of(absl::string_view key, absl::string_view text) {
    std::string mac(EVP_MAX_MD_SIZE, '\0');
    size_t bytes = 0;
    const bool made = EVP_MAC_init(context_.get(), Bytes(key), key.size(), nullptr) == 1 &&
                      EVP_MAC_update(context_.get(), Bytes(text), text.size()) == 1 &&
                      EVP_MAC_final(context_.get(), reinterpret_cast<unsigned char*>(mac.data()),
                                    &bytes, mac.size()) == 1;
    MUSTER_CHECK(made, "OpenSSL made no HMAC");
    mac.resize(bytes);
    return mac;
  }

 private:
  // Not null: to OpenSSL that is the key of before.
  static const unsigned char* Bytes(absl::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.empty() ? "" : text.data());
  }

  std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context_{nullptr, EVP_MAC_CTX_free};
};

}  // namespace

std::string HmacSha256(absl::string_view key, absl::string_view text) {
  thread_local HmacContext context;
  return context.Of(key, text);
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
