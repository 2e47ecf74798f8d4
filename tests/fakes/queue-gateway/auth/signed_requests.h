// SPDX-License-Identifier: Apache-2.0

// Requests of the account "sally", with signatures that OpenSSL's command line has made:
//
//   printf "GET\n…" | openssl dgst -sha256 -mac HMAC -macopt hexkey:0001…3f -binary | base64
//
// with the key 00 01 … 3f or, where it says so, the second one, 80 81 … bf. All are of the moment
// at which a FakeClock starts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "services/queue-gateway/auth/accounts.h"
#include "services/queue-gateway/auth/request.h"

namespace muster::queue_gateway::auth::testing {

inline constexpr char kSally[] =
    "sally:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw=="
    ":gIGCg4SFhoeIiYqLjI2Oj5CRkpOUlZaXmJmam5ydnp+goaKjpKWmp6ipqqusra6vsLGys7S1tre4ubq7vL2+vw==";

inline Account Sally() { return *ParseAccount(kSally); }

inline constexpr char kNow[] = "Fri, 11 Nov 2011 00:00:00 GMT";

using Fields = std::vector<std::pair<std::string, std::string>>;

// Sets the first field of that name, or adds it.
inline void SetField(Fields* fields, absl::string_view name, absl::string_view value) {
  for (auto& [known, text] : *fields) {
    if (known != name) continue;
    text = std::string(value);
    return;
  }
  fields->emplace_back(std::string(name), std::string(value));
}

inline void RemoveField(Fields* fields, absl::string_view name) {
  std::erase_if(*fields, [&](const auto& field) { return field.first == name; });
}

inline SignedRequest RequestOf(absl::string_view method, absl::string_view path, Fields query,
                               Fields headers) {
  SignedRequest request;
  request.method = std::string(method);
  request.raw_path = std::string(path);
  request.query = std::move(query);
  request.headers = std::move(headers);
  request.account = "sally";
  request.peer_ip = "192.0.2.1";
  return request;
}

// Updates a message, and has every header that SharedKey signs.
inline SignedRequest FullRequest() {
  SignedRequest request = RequestOf(
      "PUT", "/sally/my-queue/messages/6012a834",
      {{"visibilitytimeout", "60"}, {"popreceipt", "AgAA+w/x="}, {"timeout", "30"}},
      {{"content-language", "de"},
       {"content-encoding", "gzip"},
       {"content-length", "17"},
       {"content-md5", "HUXZLQLMul/KZ5KDcJPcOA=="},
       {"content-type", "application/xml"},
       {"date", kNow},
       {"if-modified-since", "Thu, 10 Nov 2011 00:00:00 GMT"},
       {"if-match", "\"a\""},
       {"if-none-match", "\"b\""},
       {"if-unmodified-since", "Thu, 10 Nov 2011 01:00:00 GMT"},
       {"range", "bytes=0-9"},
       {"x-ms-version", "2025-05-05"},
       {"x-ms-meta-owner", "Sally"},
       {"x-ms-date", kNow},
       {"x-ms-client-request-id", "7"},
       {"authorization", "SharedKey sally:ukG1eBLAWTNtBUjrarichN6oCo1kvQXOifkaYEwG5SU="}});
  request.queue = "my-queue";
  return request;
}

// FullRequest, as the second key signs it.
inline constexpr char kFullBySecondKey[] =
    "SharedKey sally:qOYkw3RT2RetZEkYQkPNBaY2ev5f7eayw0XI/qlpiTE=";

// Sets metadata, by SharedKeyLite.
inline SignedRequest LiteRequest() {
  SignedRequest request = RequestOf(
      "PUT", "/sally/my-queue", {{"comp", "metadata"}},
      {{"content-md5", "HUXZLQLMul/KZ5KDcJPcOA=="},
       {"content-type", "application/xml"},
       {"date", kNow},
       {"x-ms-version", "2025-05-05"},
       {"x-ms-meta-owner", "Sally"},
       {"x-ms-date", kNow},
       {"x-ms-client-request-id", "7"},
       {"authorization", "SharedKeyLite sally:VfVrSirH9w8i+4iHFb/QFKBtODZThXK/HrI0ltiHQBU="}});
  request.queue = "my-queue";
  return request;
}

// The query of a service SAS for "my-queue" that has every field but si.
inline Fields ServiceSas() {
  return {{"sp", "raup"},
          {"st", "2011-11-10T00:00:00Z"},
          {"se", "2011-11-12T00:00:00Z"},
          {"sip", "192.0.2.1-192.0.2.9"},
          {"spr", "https,http"},
          {"sv", "2025-05-05"},
          {"sig", "hiM5/E22PrFvwWMMB18giaOtEDbV9uxprOYRXlk5Fmk="}};
}

// Names the stored access policy "readers", and leaves all else to it.
inline Fields PolicySas() {
  return {{"si", "readers"},
          {"sv", "2025-05-05"},
          {"sig", "GbQVhPZlhE9vvMfZXb30WIgcJFI/6VqGSX79AoNFOwA="}};
}

// The query of an account SAS that has every field but ses.
inline Fields AccountSas() {
  return {{"sp", "rwdlacup"},
          {"ss", "q"},
          {"srt", "sco"},
          {"st", "2011-11-10T00:00:00Z"},
          {"se", "2011-11-12T00:00:00Z"},
          {"sip", "192.0.2.1"},
          {"spr", "https,http"},
          {"sv", "2025-05-05"},
          {"sig", "BWiLKe9qRpOG5is2ErnE5an0yHFtwtuuscDKNK8lYX8="}};
}

inline SignedRequest SasRequest(Fields query) {
  SignedRequest request = RequestOf("GET", "/sally/my-queue/messages", std::move(query), {});
  request.queue = "my-queue";
  return request;
}

}  // namespace muster::queue_gateway::auth::testing
