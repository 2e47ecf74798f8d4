// SPDX-License-Identifier: Apache-2.0

// Certificates that tests make for themselves: an authority, and what it signs.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "muster/rpc/tls.h"

namespace muster::rpc {

// Not thread-safe. Ends the process when a call of OpenSSL fails.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);

  // Writes a certificate for `common_name` and `alternative_names` ("DNS:localhost"), and its key,
  // into a new folder, and then points the symlink `link` at the folder: both files change at once.
  // `valid_seconds`: from now on; below 0 it has expired.
  void Issue(const std::string& common_name, const std::string& alternative_names,
             const std::string& link, int valid_seconds = 3600);
  // Writes the authority's own certificate, for programs that shall trust it.
  void WriteRoot(const std::string& path) const;

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

  static Key NewKey();
  Certificate NewCertificate(const std::string& common_name, EVP_PKEY* key);
  void Sign(X509* certificate) const;

  const std::string name_;
  int serial_ = 0;  // declared before root_, which takes the first serial number
  const Key key_;
  const Certificate root_;
};

// Returns the files that Issue wrote behind `link`, as options; `roots` may be empty.
TlsFiles FilesBehind(const std::string& link, const std::string& roots);

}  // namespace muster::rpc
