// SPDX-License-Identifier: Apache-2.0

// KeySet: the public keys of a JSON Web Key Set (RFC 7517), for the signatures of tokens.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct evp_pkey_st;  // OpenSSL's EVP_PKEY

namespace muster::queue_gateway::auth {

enum class JwsAlgorithm { kRs256, kEs256 };

// Immutable; thread-safe.
class KeySet {
 public:
  // InvalidArgument: `text` is no key set, it has more than kMaxJwksKeys keys, or no key of it can
  // be used. Keys of other kinds than RSA and P-256, and keys for encryption, are passed by.
  static absl::StatusOr<KeySet> Parse(absl::string_view text);

  // Whether a key of the set signed `signed_text`. With a `key_id` it must be the key of that id;
  // with "", any key that fits the algorithm.
  bool Verifies(JwsAlgorithm algorithm, absl::string_view key_id, absl::string_view signed_text,
                absl::string_view signature) const;

  size_t size() const { return keys_.size(); }

 private:
  struct Key {
    std::string id;
    JwsAlgorithm algorithm;
    // Shared: a key set is copied together with its keys, which do not change.
    std::shared_ptr<evp_pkey_st> key;
  };

  std::vector<Key> keys_;
};

}  // namespace muster::queue_gateway::auth
