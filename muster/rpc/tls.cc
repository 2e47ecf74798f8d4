// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/tls.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cerrno>
#include <ctime>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "muster/base/log.h"
#include "muster/base/status.h"

namespace muster::rpc {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

absl::StatusOr<Bio> OpenFile(const std::string& path, absl::string_view what) {
  errno = 0;
  Bio file(BIO_new_file(path.c_str(), "r"), &BIO_free);
  if (file != nullptr) return file;
  const int error = errno;
  return absl::InvalidArgumentError(absl::StrCat(
      "cannot read the ", what, " '", path,
      "': ", std::error_code(error == 0 ? EIO : error, std::generic_category()).message()));
}

absl::StatusOr<Certificate> ReadCertificate(const std::string& path, absl::string_view what) {
  MUSTER_ASSIGN_OR_RETURN(const Bio file, OpenFile(path, what));
  Certificate certificate(PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr), &X509_free);
  if (certificate != nullptr) return certificate;
  return absl::InvalidArgumentError(
      absl::StrCat("the ", what, " '", path, "' holds no certificate in PEM form"));
}

// There is no terminal to ask for a passphrase.
int NoPassphrase(char*, int, int, void*) { return 0; }

std::string InWords(const ASN1_TIME* time) {
  const Bio text(BIO_new(BIO_s_mem()), &BIO_free);
  if (text == nullptr || ASN1_TIME_print(text.get(), time) != 1) return "";
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(text.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

// Peers refuse the certificate, and gRPC tells neither side why. A clock that is wrong is no reason
// not to start.
void WarnUnlessValid(const X509& certificate, const std::string& path) {
  const ASN1_TIME* const begin = X509_get0_notBefore(&certificate);
  const ASN1_TIME* const end = X509_get0_notAfter(&certificate);
  if (X509_cmp_current_time(begin) < 0 && X509_cmp_current_time(end) > 0) return;
  base::Log(base::kWarning, "a certificate is not valid now",
            {{"certificate", path}, {"valid_from", InWords(begin)}, {"valid_until", InWords(end)}});
}

absl::Status CheckIdentity(const TlsFiles& files) {
  MUSTER_ASSIGN_OR_RETURN(const Certificate certificate,
                          ReadCertificate(files.certificate, "certificate"));
  WarnUnlessValid(*certificate, files.certificate);
  MUSTER_ASSIGN_OR_RETURN(const Bio file, OpenFile(files.key, "key"));
  const Key key(PEM_read_bio_PrivateKey(file.get(), nullptr, &NoPassphrase, nullptr),
                &EVP_PKEY_free);
  if (key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the key '", files.key, "' holds no private key in PEM form without a passphrase"));
  }
  if (X509_check_private_key(certificate.get(), key.get()) == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the key '", files.key, "' is not that of the certificate '", files.certificate, "'"));
}

absl::Status Check(const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty()) {
    return absl::InvalidArgumentError("a certificate needs its key, and a key its certificate");
  }
  if (files.refresh < absl::Seconds(1)) {
    return absl::InvalidArgumentError("certificates can be read again once a second at most");
  }
  if (!files.certificate.empty()) MUSTER_RETURN_IF_ERROR(CheckIdentity(files));
  if (files.roots.empty()) return absl::OkStatus();
  return ReadCertificate(files.roots, "file of root certificates").status();
}

std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider> Watch(const TlsFiles& files) {
  return std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      files.key, files.certificate, files.roots,
      static_cast<unsigned int>(absl::ToInt64Seconds(files.refresh)));
}

}  // namespace

absl::StatusOr<Validity> ValidityOf(const std::string& certificate_file) {
  MUSTER_ASSIGN_OR_RETURN(const Certificate certificate,
                          ReadCertificate(certificate_file, "certificate"));
  tm begin = {}, end = {};
  if (ASN1_TIME_to_tm(X509_get0_notBefore(certificate.get()), &begin) != 1 ||
      ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the certificate '", certificate_file, "' has times that are none"));
  }
  return Validity{absl::FromTM(begin, absl::UTCTimeZone()), absl::FromTM(end, absl::UTCTimeZone())};
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerCredentials(const TlsFiles& files) {
  if (files.certificate.empty()) {
    return absl::InvalidArgumentError("a server with TLS needs a certificate and its key");
  }
  MUSTER_RETURN_IF_ERROR(Check(files));
  grpc::experimental::TlsServerCredentialsOptions options(Watch(files));
  options.watch_identity_key_cert_pairs();
  if (files.roots.empty()) {
    options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  } else {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ChannelCredentials(
    const TlsFiles& files) {
  MUSTER_RETURN_IF_ERROR(Check(files));
  grpc::experimental::TlsChannelCredentialsOptions options;
  if (!files.certificate.empty() || !files.roots.empty()) {
    options.set_certificate_provider(Watch(files));
  }
  if (!files.certificate.empty()) options.watch_identity_key_cert_pairs();
  if (!files.roots.empty()) options.watch_root_certs();
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace muster::rpc
