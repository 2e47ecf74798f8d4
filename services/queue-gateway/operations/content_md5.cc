// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/content_md5.h"

#include <openssl/evp.h>

#include <array>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "muster/base/check.h"

namespace muster::queue_gateway::operations {
namespace {

std::string Md5(absl::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  MUSTER_CHECK(
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_md5(), nullptr) == 1,
      "no MD5");
  return {reinterpret_cast<const char*>(digest.data()), size};
}

}  // namespace

std::optional<protocol::Error> CheckMd5(const Call& call) {
  const auto header = http::HeaderOf(call.http.headers, "content-md5");
  if (!header.has_value() || header->empty()) return std::nullopt;
  std::string wanted;
  const std::string computed = Md5(call.http.body);
  if (!absl::Base64Unescape(*header, &wanted) || wanted.size() != computed.size()) {
    return protocol::ErrorCode::kInvalidMd5;
  }
  if (wanted != computed) return protocol::ErrorCode::kMd5Mismatch;
  return std::nullopt;
}

}  // namespace muster::queue_gateway::operations
