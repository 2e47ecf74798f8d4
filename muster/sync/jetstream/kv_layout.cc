#include "muster/sync/jetstream/kv_layout.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace muster::sync::jetstream {
namespace {

constexpr absl::string_view kEscapedDot = "=2E";
constexpr absl::string_view kEscapedUnderscore = "=5F";
constexpr absl::string_view kReservedPrefix = "_kv";

// NATS's own default, which its tools set. Nothing here sends a message id.
constexpr absl::Duration kDuplicateWindow = absl::Minutes(2);

}  // namespace

std::string StreamOf(absl::string_view bucket) { return absl::StrCat("KV_", bucket); }

std::string SubjectOf(absl::string_view bucket, absl::string_view key) {
  return absl::StrCat("$KV.", bucket, ".", EscapeKey(key));
}

std::string EscapeKey(absl::string_view key) {
  std::string escaped;
  for (size_t i = 0; i < key.size(); ++i) {
    const bool alone = i > 0 && i + 1 < key.size() && key[i - 1] != '.';
    if (key[i] == '.' && !alone) {
      absl::StrAppend(&escaped, kEscapedDot);
    } else if (i == 0 && absl::StartsWith(key, kReservedPrefix)) {
      absl::StrAppend(&escaped, kEscapedUnderscore);
    } else {
      escaped += key[i];
    }
  }
  return escaped;
}

std::string UnescapeKey(absl::string_view escaped) {
  return absl::StrReplaceAll(escaped, {{kEscapedDot, "."}, {kEscapedUnderscore, "_"}});
}

nlohmann::json BucketConfig(absl::string_view bucket, int replicas) {
  return {{"name", StreamOf(bucket)},
          {"subjects", {absl::StrCat("$KV.", bucket, ".>")}},
          {"storage", "file"},
          {"retention", "limits"},
          {"num_replicas", replicas},
          {"max_msgs_per_subject", 1},
          // A record never vanishes by itself: an id generator would begin again at 1.
          {"max_msgs", -1},
          {"max_bytes", -1},
          {"max_age", 0},
          // A write that finds no room fails, it does not push out another record.
          {"discard", "new"},
          {"duplicate_window", absl::ToInt64Nanoseconds(kDuplicateWindow)},
          // So that nobody's read is answered by a replica that lags behind.
          {"allow_direct", false},
          {"allow_rollup_hdrs", true},
          {"deny_delete", true}};
}

bool MarksDeletion(absl::Span<const nats::Header> headers) {
  return std::any_of(headers.begin(), headers.end(), [](const nats::Header& header) {
    return absl::EqualsIgnoreCase(header.name, "KV-Operation") &&
           (header.value == "DEL" || header.value == "PURGE");
  });
}

}  // namespace muster::sync::jetstream
