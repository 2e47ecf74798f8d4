// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/rpc/test_certificates.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"

namespace muster::rpc {
namespace {

void Must(bool worked, const char* what) {
  if (worked) return;
  std::cerr << "a test's certificates cannot be made: " << what << "\n";
  std::abort();
}

template <typename Write>
void WriteFile(const std::string& path, Write write) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  Must(file != nullptr && write(file) == 1 && std::fclose(file) == 0, path.c_str());
}

void AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension =
      X509V3_EXT_conf_nid(nullptr, &context, kind, const_cast<char*>(value.c_str()));
  Must(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1, value.c_str());
  X509_EXTENSION_free(extension);
}

}  // namespace

TestAuthority::TestAuthority(const std::string& name)
    : name_(name), key_(NewKey()), root_(NewCertificate(name, key_.get())) {
  AddExtension(root_.get(), root_.get(), NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(root_.get(), root_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  Sign(root_.get());
}

void TestAuthority::Issue(const std::string& common_name, const std::string& alternative_names,
                          const std::string& link, int valid_seconds) {
  const Key key = NewKey();
  const Certificate certificate = NewCertificate(common_name, key.get());
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), valid_seconds);
  AddExtension(certificate.get(), root_.get(), NID_subject_alt_name, alternative_names);
  Sign(certificate.get());
  const std::string folder = absl::StrCat(link, ".", name_, ".", serial_);
  std::filesystem::create_directory(folder);
  WriteFile(folder + "/certificate.pem",
            [&](std::FILE* file) { return PEM_write_X509(file, certificate.get()); });
  WriteFile(folder + "/key.pem", [&](std::FILE* file) {
    return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  std::filesystem::create_directory_symlink(folder, link + ".new");
  std::filesystem::rename(link + ".new", link);
}

void TestAuthority::WriteRoot(const std::string& path) const {
  WriteFile(path, [&](std::FILE* file) { return PEM_write_X509(file, root_.get()); });
}

TestAuthority::Key TestAuthority::NewKey() {
  Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  Must(key != nullptr, "a key");
  return key;
}

TestAuthority::Certificate TestAuthority::NewCertificate(const std::string& common_name,
                                                         EVP_PKEY* key) {
  Certificate certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), ++serial_);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key);
  const auto name_entry = [](X509_NAME* name, const std::string& text) {
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(text.c_str()), -1, -1, 0);
  };
  name_entry(X509_get_subject_name(certificate.get()), common_name);
  name_entry(X509_get_issuer_name(certificate.get()), name_);
  return certificate;
}

void TestAuthority::Sign(X509* certificate) const {
  Must(X509_sign(certificate, key_.get(), EVP_sha256()) > 0, "a signature");
}

TlsFiles FilesBehind(const std::string& link, const std::string& roots) {
  TlsFiles files;
  files.certificate = link + "/certificate.pem";
  files.key = link + "/key.pem";
  files.roots = roots;
  files.refresh = absl::Seconds(1);
  return files;
}

}  // namespace muster::rpc
