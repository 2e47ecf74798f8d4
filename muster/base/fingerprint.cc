// SPDX-License-Identifier: Apache-2.0
#include "muster/base/fingerprint.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <array>
#include <new>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::base {
namespace {

constexpr size_t kFingerprintBytes = 16;

Fingerprint128 FromXxh(XXH128_hash_t hash) { return {.high = hash.high64, .low = hash.low64}; }

// SHA-256 and XXH3 in memory can fail only for lack of memory.
void CheckOk(bool ok) {
  if (!ok) throw std::bad_alloc();
}

struct FreeEvp {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using EvpContext = std::unique_ptr<EVP_MD_CTX, FreeEvp>;

EvpContext NewEvpContext() {
  EvpContext context(EVP_MD_CTX_new());
  CheckOk(context != nullptr);
  return context;
}

}  // namespace

std::string Fingerprint128::ToHex() const {
  return absl::StrCat(absl::Hex(high, absl::kZeroPad16), absl::Hex(low, absl::kZeroPad16));
}

std::optional<Fingerprint128> Fingerprint128::FromHex(absl::string_view hex) {
  if (hex.size() != 32) return std::nullopt;
  for (char c : hex) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return std::nullopt;
  }
  Fingerprint128 result;
  if (!absl::SimpleHexAtoi(hex.substr(0, 16), &result.high) ||
      !absl::SimpleHexAtoi(hex.substr(16), &result.low)) {
    return std::nullopt;
  }
  return result;
}

std::string Fingerprint128::ToBytes() const {
  std::string bytes(kFingerprintBytes, '\0');
  for (size_t i = 0; i < kFingerprintBytes / 2; ++i) {
    bytes[i] = static_cast<char>(high >> (56 - 8 * i));
    bytes[i + kFingerprintBytes / 2] = static_cast<char>(low >> (56 - 8 * i));
  }
  return bytes;
}

std::optional<Fingerprint128> Fingerprint128::FromBytes(absl::string_view bytes) {
  if (bytes.size() != kFingerprintBytes) return std::nullopt;
  Fingerprint128 result;
  for (size_t i = 0; i < kFingerprintBytes / 2; ++i) {
    result.high = result.high << 8 | static_cast<uint8_t>(bytes[i]);
    result.low = result.low << 8 | static_cast<uint8_t>(bytes[i + kFingerprintBytes / 2]);
  }
  return result;
}

Fingerprint128 Fingerprint(absl::string_view bytes) {
  return FromXxh(XXH3_128bits(bytes.data(), bytes.size()));
}

struct Fingerprinter::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> xxh{XXH3_createState()};
};

Fingerprinter::Fingerprinter() : state_(std::make_unique<State>()) {
  CheckOk(state_->xxh != nullptr && XXH3_128bits_reset(state_->xxh.get()) == XXH_OK);
}

Fingerprinter::~Fingerprinter() = default;
Fingerprinter::Fingerprinter(Fingerprinter&&) noexcept = default;
Fingerprinter& Fingerprinter::operator=(Fingerprinter&&) noexcept = default;

void Fingerprinter::Update(absl::string_view bytes) {
  CheckOk(XXH3_128bits_update(state_->xxh.get(), bytes.data(), bytes.size()) == XXH_OK);
}

Fingerprint128 Fingerprinter::Digest() const {
  return FromXxh(XXH3_128bits_digest(state_->xxh.get()));
}

std::string Sha256Hex(absl::string_view bytes) {
  Sha256 sha;
  sha.Update(bytes);
  return sha.HexDigest();
}

struct Sha256::State {
  EvpContext evp = NewEvpContext();
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  CheckOk(EVP_DigestInit_ex(state_->evp.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(absl::string_view bytes) {
  CheckOk(EVP_DigestUpdate(state_->evp.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::HexDigest() const {
  // Finishing consumes a context, so it finishes a copy.
  const EvpContext copy = NewEvpContext();
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  CheckOk(EVP_MD_CTX_copy_ex(copy.get(), state_->evp.get()) == 1 &&
          EVP_DigestFinal_ex(copy.get(), digest.data(), &size) == 1);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), size));
}

}  // namespace muster::base
