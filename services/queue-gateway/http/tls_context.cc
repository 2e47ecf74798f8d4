// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/http/tls_context.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/file_version.h"
#include "muster/base/log.h"
#include "muster/base/status.h"

namespace muster::queue_gateway::http {
namespace {

namespace ssl = boost::asio::ssl;

absl::Status Unusable(absl::string_view what, const std::string& path,
                      const boost::system::error_code& error) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", path, "' cannot be read as ", what, ": ", error.message()));
}

}  // namespace

TlsContext::TlsContext(CertificateFiles files, absl::Duration refresh, base::Clock* clock)
    : files_(std::move(files)), refresh_(refresh), clock_(clock), looked_(clock->Monotonic()) {}

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Load(CertificateFiles files,
                                                             absl::Duration refresh,
                                                             base::Clock* clock) {
  // Not make_unique: the constructor is private.
  std::unique_ptr<TlsContext> tls(new TlsContext(std::move(files), refresh, clock));
  // The version is older than what is read then, so that no change is missed.
  tls->version_ = tls->Version();
  MUSTER_ASSIGN_OR_RETURN(tls->context_, tls->Read());
  return tls;
}

std::string TlsContext::Version() const {
  return absl::StrCat(base::FileVersion(files_.certificate).value_or("absent"), " ",
                      base::FileVersion(files_.key).value_or("absent"));
}

absl::StatusOr<std::unique_ptr<ssl::context>> TlsContext::Read() const {
  auto context = std::make_unique<ssl::context>(ssl::context::tls_server);
  boost::system::error_code error;
  context->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                           ssl::context::no_tlsv1_1 | ssl::context::no_compression,
                       error);
  context->use_certificate_chain_file(files_.certificate, error);
  if (error) return Unusable("a certificate", files_.certificate, error);
  context->use_private_key_file(files_.key, ssl::context::pem, error);
  if (error) return Unusable("a key", files_.key, error);
  if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", files_.key, "' is not the key of '", files_.certificate, "'"));
  }
  return context;
}

ssl::context& TlsContext::Current() {
  if (clock_->Monotonic() - looked_ < refresh_) return *context_;
  looked_ = clock_->Monotonic();
  std::string version = Version();
  if (version == version_) return *context_;
  // One that cannot be used is read again at each look: the cause, such as too many open files, may
  // pass without a change of the files.
  absl::StatusOr<std::unique_ptr<ssl::context>> read = Read();
  if (read.ok()) {
    context_ = *std::move(read);
    version_ = std::move(version);
    base::Log(base::kInfo, "certificate renewed", {{"file", files_.certificate}});
  } else if (std::exchange(unusable_, version) != version) {
    base::LogUnlessOk(base::kWarning, "the renewed certificate cannot be used", read.status());
  }
  return *context_;
}

}  // namespace muster::queue_gateway::http
