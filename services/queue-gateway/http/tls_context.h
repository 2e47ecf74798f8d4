// SPDX-License-Identifier: Apache-2.0

// TlsContext: the certificate of an HTTPS server, read again when its files change.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"

namespace muster::queue_gateway::http {

// Paths of PEM files: the certificate, followed by the intermediate ones, and its private key.
// Replace both at once, by renaming their folder or a symlink to it.
struct CertificateFiles {
  std::string certificate;
  std::string key;
};

// Not thread-safe: the thread that accepts connections owns it.
class TlsContext {
 public:
  // InvalidArgument naming the file: it cannot be read, holds no such thing, or the key is not the
  // certificate's.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Load(CertificateFiles files,
                                                          absl::Duration refresh,
                                                          base::Clock* clock);

  // The context for the next connection. Looks at the files if `refresh` has passed since the last
  // look. Files that cannot be used are logged once, and the certificate before stays in use until
  // they can.
  boost::asio::ssl::context& Current();

 private:
  TlsContext(CertificateFiles files, absl::Duration refresh, base::Clock* clock);

  // What tells one version of the files from another.
  std::string Version() const;
  absl::StatusOr<std::unique_ptr<boost::asio::ssl::context>> Read() const;

  const CertificateFiles files_;
  const absl::Duration refresh_;
  base::Clock* const clock_;  // not owned
  std::string version_;       // of the files in use
  std::string unusable_;      // of those that could not be used at last, which was logged
  absl::Duration looked_;     // monotonic time of the last look
  // Connections keep what they need of it: OpenSSL counts who uses its part.
  std::unique_ptr<boost::asio::ssl::context> context_;
};

}  // namespace muster::queue_gateway::http
