#include "muster/blob/jetstream/orphans.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/status_macros.h"
#include "muster/blob/jetstream/object_layout.h"

namespace muster::blob::jetstream {
namespace {

// The nuids of chunks that are there, of puts of ours that began before `before`.
absl::StatusOr<std::vector<std::string>> OldNuids(nats::JetStream* jetstream,
                                                  absl::string_view bucket, absl::Time before) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> subjects,
                          jetstream->Subjects(StreamOf(bucket), ChunkSubject(bucket, ">")));
  const std::string prefix = ChunkSubject(bucket, "");
  std::vector<std::string> old;
  for (const std::string& subject : subjects) {
    const absl::string_view nuid = absl::StripPrefix(subject, prefix);
    const std::optional<absl::Time> made = TimeOfNuid(nuid);
    if (made.has_value() && *made < before) old.emplace_back(nuid);
  }
  return old;
}

// The nuids that metadata names.
absl::StatusOr<absl::flat_hash_set<std::string>> NamedNuids(nats::JetStream* jetstream,
                                                            absl::string_view bucket) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> subjects,
                          jetstream->Subjects(StreamOf(bucket), MetaSubject(bucket, ">")));
  absl::flat_hash_set<std::string> named;
  for (const std::string& subject : subjects) {
    const auto message = jetstream->LastMessage(StreamOf(bucket), subject);
    if (nats::ErrorCodeOf(message.status()) == nats::kNoMessageFound)
      continue;  // deleted meanwhile
    MUSTER_RETURN_IF_ERROR(message.status());
    const auto info = DecodeObject(message->data);
    if (!info.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("what ", subject, " names: ", info.status().message()));
    }
    named.insert(info->nuid);
  }
  return named;
}

}  // namespace

absl::StatusOr<size_t> RemoveOrphans(nats::JetStream* jetstream, absl::string_view bucket,
                                     absl::Time before) {
  MUSTER_ASSIGN_OR_RETURN(const nats::StreamState state, jetstream->GetStream(StreamOf(bucket)));
  if (state.messages == 0 || state.first_time >= before) return 0;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> old, OldNuids(jetstream, bucket, before));
  if (old.empty()) return 0;
  // After the chunks: the metadata of a put comes after its chunks, too.
  MUSTER_ASSIGN_OR_RETURN(const auto named, NamedNuids(jetstream, bucket));
  size_t removed = 0;
  for (const std::string& nuid : old) {
    if (named.contains(nuid)) continue;
    MUSTER_RETURN_IF_ERROR(jetstream->Purge(StreamOf(bucket), ChunkSubject(bucket, nuid)).status());
    ++removed;
  }
  return removed;
}

}  // namespace muster::blob::jetstream
