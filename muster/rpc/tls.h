// SPDX-License-Identifier: Apache-2.0

// TLS from files, which are read again while in use: a renewed certificate needs no restart.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "muster/rpc/limits.h"

namespace muster::rpc {

// Paths of PEM files. Replace certificate and key at once, by renaming their folder or a symlink to
// it: a handshake between the two would fail.
struct TlsFiles {
  // This side's identity: the certificate, followed by the intermediate ones, and its private key.
  // Required for a server, optional for a client.
  std::string certificate;
  std::string key;
  // The authorities that this side accepts. A server with roots demands a certificate of every
  // client (mTLS); one without asks for none. A client without roots uses the system's.
  std::string roots;
  // How often the files are read again; whole seconds, at least one.
  absl::Duration refresh = kCertificateRefresh;
};

// InvalidArgument naming the file: it cannot be read, holds no such thing, or the key is not the
// certificate's. gRPC itself would only fail each handshake.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerCredentials(const TlsFiles& files);
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ChannelCredentials(const TlsFiles& files);

// When a certificate may be used.
struct Validity {
  absl::Time begin;
  absl::Time end;
};

// Of the first certificate in a PEM file. Errors as those of ServerCredentials.
absl::StatusOr<Validity> ValidityOf(const std::string& certificate_file);

}  // namespace muster::rpc
