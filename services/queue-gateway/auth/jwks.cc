// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/jwks.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/queue-gateway/auth/limits.h"
#include "services/queue-gateway/auth/mac.h"

namespace muster::queue_gateway::auth {

namespace {

using nlohmann::json;

constexpr size_t kP256Bytes = 32;  // of a coordinate, and of each half of a signature

// Deleters for what OpenSSL allocates.
struct Free {
  void operator()(BIGNUM* number) const { BN_free(number); }
  void operator()(ECDSA_SIG* signature) const { ECDSA_SIG_free(signature); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
  void operator()(OSSL_PARAM* parameters) const { OSSL_PARAM_free(parameters); }
  void operator()(OSSL_PARAM_BLD* builder) const { OSSL_PARAM_BLD_free(builder); }
};

template <typename T>
using Owned = std::unique_ptr<T, Free>;

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// OpenSSL keeps a thread's errors until they are read. This class clears them, so that what failed
// here is not taken for an error of the TLS connection that the thread serves next.
class ErrorsForgotten {
 public:
  ErrorsForgotten() = default;
  ~ErrorsForgotten() { ERR_clear_error(); }
  ErrorsForgotten(const ErrorsForgotten&) = delete;
  ErrorsForgotten& operator=(const ErrorsForgotten&) = delete;
};

// A string member; nullopt: it is missing or is none.
std::optional<std::string> Text(const json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end() || !member->is_string()) return std::nullopt;
  return member->get<std::string>();
}

std::optional<std::string> Number(const json& object, const char* name) {
  const std::optional<std::string> text = Text(object, name);
  return text.has_value() ? DecodeBase64Url(*text) : std::nullopt;
}

// Null: OpenSSL does not take the parameters for a public key.
Owned<EVP_PKEY> MakeKey(const char* type, OSSL_PARAM_BLD* builder) {
  const Owned<OSSL_PARAM> parameters(OSSL_PARAM_BLD_to_param(builder));
  const Owned<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (parameters == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1) {
    return nullptr;
  }
  Owned<EVP_PKEY> owned(key);
  const Owned<EVP_PKEY_CTX> check(EVP_PKEY_CTX_new(owned.get(), nullptr));
  if (check == nullptr || EVP_PKEY_public_check(check.get()) != 1) return nullptr;
  return owned;
}

Owned<EVP_PKEY> MakeRsaKey(const json& object) {
  const std::optional<std::string> n = Number(object, "n");
  const std::optional<std::string> e = Number(object, "e");
  if (!n.has_value() || !e.has_value()) return nullptr;
  const Owned<BIGNUM> modulus(BN_bin2bn(Bytes(*n), static_cast<int>(n->size()), nullptr));
  const Owned<BIGNUM> exponent(BN_bin2bn(Bytes(*e), static_cast<int>(e->size()), nullptr));
  const int bits = BN_num_bits(modulus.get());
  if (bits < kMinRsaBits || bits > kMaxRsaBits) return nullptr;
  const Owned<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get());
  return MakeKey("RSA", builder.get());
}

Owned<EVP_PKEY> MakeP256Key(const json& object) {
  const std::optional<std::string> x = Number(object, "x");
  const std::optional<std::string> y = Number(object, "y");
  if (Text(object, "crv") != "P-256" || !x.has_value() || !y.has_value() ||
      x->size() != kP256Bytes || y->size() != kP256Bytes) {
    return nullptr;
  }
  const std::string point = absl::StrCat("\x04", *x, *y);  // SEC 1: a point, not compressed
  const Owned<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                   point.size());
  return MakeKey("EC", builder.get());
}

// OpenSSL takes the two halves of a signature as ASN.1 only. "": it has not two halves.
std::string ToAsn1(absl::string_view signature) {
  if (signature.size() != 2 * kP256Bytes) return "";
  const Owned<ECDSA_SIG> halves(ECDSA_SIG_new());
  BIGNUM* const r = BN_bin2bn(Bytes(signature), kP256Bytes, nullptr);
  BIGNUM* const s = BN_bin2bn(Bytes(signature) + kP256Bytes, kP256Bytes, nullptr);
  ECDSA_SIG_set0(halves.get(), r, s);  // owns both from here on
  std::string encoded(static_cast<size_t>(i2d_ECDSA_SIG(halves.get(), nullptr)), '\0');
  auto* out = reinterpret_cast<unsigned char*>(encoded.data());
  i2d_ECDSA_SIG(halves.get(), &out);
  return encoded;
}

bool IsSignedByKey(EVP_PKEY* key, absl::string_view text, absl::string_view signature) {
  const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
  return EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(text),
                          text.size()) == 1;
}

}  // namespace

absl::StatusOr<KeySet> KeySet::Parse(absl::string_view text) {
  const json root = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object() || !root.contains("keys") || !root["keys"].is_array()) {
    return absl::InvalidArgumentError("a key set is a JSON object with the array 'keys'");
  }
  if (root["keys"].size() > kMaxJwksKeys) {
    return absl::InvalidArgumentError(
        absl::StrCat("the key set has more than ", kMaxJwksKeys, " keys"));
  }
  const ErrorsForgotten forgotten;
  KeySet set;
  for (const json& object : root["keys"]) {
    if (!object.is_object() || Text(object, "use").value_or("sig") != "sig") continue;
    const bool is_rsa = Text(object, "kty") == "RSA";
    const JwsAlgorithm algorithm = is_rsa ? JwsAlgorithm::kRs256 : JwsAlgorithm::kEs256;
    const std::string name = is_rsa ? "RS256" : "ES256";
    if (Text(object, "alg").value_or(name) != name) continue;
    if (!is_rsa && Text(object, "kty") != "EC") continue;
    std::shared_ptr<EVP_PKEY> key = is_rsa ? MakeRsaKey(object) : MakeP256Key(object);
    if (key == nullptr) continue;
    set.keys_.push_back({Text(object, "kid").value_or(""), algorithm, std::move(key)});
  }
  if (set.keys_.empty()) {
    return absl::InvalidArgumentError("the key set has no RSA or P-256 key for signatures");
  }
  return set;
}

bool KeySet::Verifies(JwsAlgorithm algorithm, absl::string_view key_id,
                      absl::string_view signed_text, absl::string_view signature) const {
  const ErrorsForgotten forgotten;
  const bool is_ecdsa = algorithm == JwsAlgorithm::kEs256;
  const std::string encoded = is_ecdsa ? ToAsn1(signature) : std::string(signature);
  if (encoded.empty()) return false;
  for (const Key& key : keys_) {
    if (key.algorithm != algorithm || (!key_id.empty() && key.id != key_id)) continue;
    if (IsSignedByKey(key.key.get(), signed_text, encoded)) return true;
  }
  return false;
}

}  // namespace muster::queue_gateway::auth
