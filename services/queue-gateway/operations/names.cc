// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/queue/limits.h"

namespace muster::queue_gateway::operations {
namespace {

using protocol::ErrorCode;

constexpr absl::string_view kPrefix = "x-ms-meta-";
constexpr size_t kMinQueueName = 3;
constexpr size_t kMaxQueueName = 63;

bool IsQueueNameCharacter(char c) {
  return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
}

// An identifier of C#, as the API asks for, or one with dashes: muster's own names have them.
bool IsMetadataName(absl::string_view name) {
  return (absl::ascii_isalpha(name.front()) || name.front() == '_') &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-'; });
}

void Add(absl::string_view name, absl::string_view value, queue::Metadata* metadata) {
  for (auto& [key, there] : *metadata) {
    if (absl::EqualsIgnoreCase(key, name)) {
      absl::StrAppend(&there, ",", value);
      return;
    }
  }
  metadata->emplace(name, value);
}

}  // namespace

std::optional<protocol::Error> CheckQueueName(absl::string_view name) {
  if (name.size() < kMinQueueName || name.size() > kMaxQueueName) {
    return ErrorCode::kOutOfRangeInput;
  }
  if (!std::all_of(name.begin(), name.end(), IsQueueNameCharacter) || name.front() == '-' ||
      name.back() == '-' || absl::StrContains(name, "--")) {
    return ErrorCode::kInvalidResourceName;
  }
  return std::nullopt;
}

protocol::OrError<queue::Metadata> MetadataOf(const http::Headers& headers) {
  queue::Metadata metadata;
  size_t bytes = 0;
  for (const auto& [header, value] : headers) {
    if (!absl::StartsWithIgnoreCase(header, kPrefix)) continue;
    const absl::string_view name = absl::string_view(header).substr(kPrefix.size());
    if (name.empty()) return ErrorCode::kEmptyMetadataKey;
    if (!IsMetadataName(name)) return ErrorCode::kInvalidMetadata;
    bytes += name.size() + value.size();
    if (bytes > queue::kMaxMetadataBytes) return ErrorCode::kMetadataTooLarge;
    Add(name, value, &metadata);
  }
  return metadata;
}

http::Headers MetadataHeaders(const queue::Metadata& metadata) {
  http::Headers headers;
  for (const auto& [name, value] : metadata) {
    headers.emplace_back(absl::StrCat(kPrefix, name), value);
  }
  return headers;
}

}  // namespace muster::queue_gateway::operations
