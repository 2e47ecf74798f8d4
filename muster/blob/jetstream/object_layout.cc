// SPDX-License-Identifier: Apache-2.0
#include "muster/blob/jetstream/object_layout.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "muster/base/check.h"
#include "muster/base/fingerprint.h"
#include "muster/base/random.h"
#include "muster/base/text.h"
#include "nlohmann/json.hpp"

namespace muster::blob::jetstream {
namespace {

using nlohmann::json;

constexpr absl::string_view kDigestKind = "SHA-256=";
constexpr absl::string_view kNuidPrefix = "muster-";
constexpr size_t kNuidTimeDigits = 12;
constexpr size_t kNuidRandomDigits = 16;
constexpr absl::string_view kNoTime = "0001-01-01T00:00:00Z";

// With padding, which tools insist on; Abseil's own leaves it out.
std::string Base64Url(absl::string_view bytes) {
  return absl::StrReplaceAll(absl::Base64Escape(bytes), {{"+", "-"}, {"/", "_"}});
}

std::string TextIn(const json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<uint64_t> CountIn(const json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

bool IsTrueIn(const json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// Whether it can be the last part of a subject.
bool IsToken(absl::string_view text) {
  return !text.empty() && text.find_first_of(" .*>\t\r\n") == absl::string_view::npos;
}

std::string TokenOf(absl::string_view name) { return name == ">" ? ">" : Base64Url(name); }

}  // namespace

std::string EncodeObject(const ObjectInfo& info) {
  MUSTER_CHECK(!info.deleted && IsToken(info.nuid), "blob '", info.name, "', nuid '", info.nuid,
               "', deleted ", int{info.deleted});
  return json({{"name", info.name},
               {"bucket", info.bucket},
               {"nuid", info.nuid},
               {"size", info.size},
               {"chunks", info.chunks},
               {"digest", info.digest},
               {"mtime", kNoTime},
               {"options", {{"max_chunk_size", kChunkBytes}}}})
      .dump();
}

absl::StatusOr<ObjectInfo> DecodeObject(absl::string_view text) {
  const json object = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::DataLossError("its metadata is no JSON object");
  ObjectInfo info;
  info.name = TextIn(object, "name");
  info.bucket = TextIn(object, "bucket");
  info.nuid = TextIn(object, "nuid");
  info.digest = TextIn(object, "digest");
  info.deleted = IsTrueIn(object, "deleted");
  const std::optional<uint64_t> size = CountIn(object, "size"), chunks = CountIn(object, "chunks");
  info.size = size.value_or(0);
  info.chunks = chunks.value_or(0);
  if (info.deleted) return info;
  if (!IsToken(info.nuid)) return absl::DataLossError("its metadata names no chunks");
  if (!size.has_value() || !chunks.has_value()) {
    return absl::DataLossError("its metadata does not say how large it is");
  }
  return info;
}

std::string DigestOf(absl::string_view bytes) {
  return absl::StrCat(kDigestKind, Base64Url(base::BytesFromHex(base::Sha256Hex(bytes))));
}

std::string MakeNuid(absl::Time now) {
  return absl::StrCat(kNuidPrefix,
                      absl::Hex(static_cast<uint64_t>(absl::ToUnixMillis(now)), absl::kZeroPad12),
                      "-", absl::Hex(base::RandomSeed(), absl::kZeroPad16));
}

std::optional<absl::Time> TimeOfNuid(absl::string_view nuid) {
  if (!absl::ConsumePrefix(&nuid, kNuidPrefix) ||
      nuid.size() != kNuidTimeDigits + 1 + kNuidRandomDigits || nuid[kNuidTimeDigits] != '-') {
    return std::nullopt;
  }
  int64_t milliseconds = 0;
  if (!absl::SimpleHexAtoi(nuid.substr(0, kNuidTimeDigits), &milliseconds)) return std::nullopt;
  return absl::FromUnixMillis(milliseconds);
}

std::string StreamOf(absl::string_view bucket) { return absl::StrCat("OBJ_", bucket); }

std::string ChunkSubject(absl::string_view bucket, absl::string_view nuid) {
  return absl::StrCat("$O.", bucket, ".C.", nuid);
}

std::string MetaSubject(absl::string_view bucket, absl::string_view name) {
  return absl::StrCat("$O.", bucket, ".M.", TokenOf(name));
}

json BucketConfig(absl::string_view bucket, int replicas) {
  return {
      {"name", StreamOf(bucket)},
      {"subjects", {ChunkSubject(bucket, ">"), MetaSubject(bucket, ">")}},
      {"storage", "file"},
      {"retention", "limits"},
      {"num_replicas", replicas},
      // A blob never vanishes by itself, nor a part of it; an administrator may bound the bytes.
      {"max_msgs", -1},
      {"max_msgs_per_subject", -1},
      {"max_age", 0},
      {"discard", "new"},
      // Otherwise a replica that lags behind could answer a read.
      {"allow_direct", false},
      {"allow_rollup_hdrs", true},
      {"deny_delete", false},
      {"deny_purge", false}};
}

}  // namespace muster::blob::jetstream
