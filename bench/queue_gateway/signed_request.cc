// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_gateway/signed_request.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstdint>
#include <ctime>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster::gateway_bench {
namespace {

constexpr char kAccount[] = "devstoreaccount1";
// The published key of the development account, as every client has it built in.
constexpr char kKey[] =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
constexpr char kVersion[] = "2021-12-02";
constexpr char kContentType[] = "application/xml";

std::string Escaped(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (absl::ascii_isalnum(c) || c == '-') {
      escaped += c;
    } else {
      absl::StrAppendFormat(&escaped, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

std::string Signature(absl::string_view text) {
  static const auto* const key = [] {
    auto* const bytes = new std::string;
    absl::Base64Unescape(kKey, bytes);
    return bytes;
  }();
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac;
  unsigned int size = 0;
  HMAC(EVP_sha256(), key->data(), static_cast<int>(key->size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &size);
  return absl::Base64Escape({reinterpret_cast<const char*>(mac.data()), size});
}

}  // namespace

const std::string& Signer::Date() {
  const int64_t second = std::time(nullptr);
  if (second != second_) {
    second_ = second;
    date_ = absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::FromUnixSeconds(second),
                             absl::UTCTimeZone());
  }
  return date_;
}

std::string Signer::Head(const Request& request) {
  const std::string path = absl::StrCat("/", kAccount, request.path);
  const absl::string_view type = request.body.empty() ? "" : kContentType;
  const std::string length = request.body.empty() ? "" : absl::StrCat(request.body.size());
  std::string signed_parameters;
  std::string target = path;
  for (const auto& [name, value] : request.query) {
    absl::StrAppend(&signed_parameters, "\n", name, ":", value);
    absl::StrAppend(&target, target.size() == path.size() ? "?" : "&", name, "=", Escaped(value));
  }
  const std::string text = absl::StrCat(
      request.method, "\n\n\n", length, "\n\n", type, "\n\n\n\n\n\n\nx-ms-date:", date_,
      "\nx-ms-version:", kVersion, "\n/", kAccount, path, signed_parameters);
  return absl::StrCat(request.method, " ", target, " HTTP/1.1\r\nHost: ", host_,
                      "\r\nx-ms-date: ", date_, "\r\nx-ms-version: ", kVersion,
                      type.empty() ? "" : "\r\nContent-Type: ", type,
                      "\r\nAuthorization: SharedKey ", kAccount, ":", Signature(text),
                      "\r\nContent-Length: ", request.body.size(), "\r\n\r\n");
}

std::string Signer::Sign(const Request& request) {
  std::string key =
      absl::StrCat(request.method, " ", request.path, " ", request.body.size(), " ", Date());
  for (const auto& [name, value] : request.query) absl::StrAppend(&key, " ", name, "=", value);
  if (key != known_) {
    head_ = Head(request);
    known_ = std::move(key);
  }
  return absl::StrCat(head_, request.body);
}

}  // namespace muster::gateway_bench
