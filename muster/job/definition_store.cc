// SPDX-License-Identifier: Apache-2.0
#include "muster/job/definition_store.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status.h"

namespace muster::job {

absl::Status DefinitionStore::NoteHistory(const std::vector<JobRecord>& records) {
  const std::string key = HistoryKey(records.back().name);
  return Rewrite(store_, key, [&](const auto& there) -> absl::StatusOr<std::optional<std::string>> {
    // One that cannot be read is written anew: it only helps to tidy up.
    std::vector<JobRecord> all = DecodeHistory(there.data, key).value_or(std::vector<JobRecord>());
    for (const JobRecord& record : records) {
      std::erase_if(all, [&](const JobRecord& other) {
        return other.revision == record.revision && other.text_hash == record.text_hash;
      });
      all.push_back(record);
    }
    if (all.size() > kMaxDefinitions) {
      all.erase(all.begin(), all.end() - static_cast<ptrdiff_t>(kMaxDefinitions));
    }
    return EncodeHistory(all);
  });
}

absl::Status DefinitionStore::WriteText(absl::string_view text, absl::string_view hash, bool anew) {
  for (size_t piece = 0; !text.empty(); ++piece) {
    MUSTER_RETURN_IF_ERROR(Overwrite(PieceKey(hash, piece), text.substr(0, kPieceBytes), anew));
    text.remove_prefix(std::min(text.size(), kPieceBytes));
  }
  return absl::OkStatus();
}

absl::Status DefinitionStore::WriteRevision(JobRecord record, bool anew) {
  const std::string key = RevisionKey(record.revision);
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData there, store_->Get(key));
  // A record that cannot be read is written anew.
  const absl::StatusOr<JobRecord> before = DecodeRecord(there.data, key);
  record.unknown = before.ok() ? before->unknown : std::string();
  return Overwrite(key, EncodeRecord(record), anew);
}

absl::Status DefinitionStore::Overwrite(const std::string& key, absl::string_view data, bool anew) {
  return Rewrite(store_, key, [&](const auto& there) -> absl::StatusOr<std::optional<std::string>> {
    const bool is_same = there.version != sync::kAbsent && there.data == data;
    if (is_same && !anew) return std::nullopt;
    return std::string(data);
  });
}

absl::StatusOr<std::string> DefinitionStore::ReadText(const JobRecord& record) {
  std::string text;
  for (size_t piece = 0; text.size() < record.text_bytes; ++piece) {
    const std::string key = PieceKey(record.text_hash, piece);
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData data, store_->Get(key));
    if (data.data.empty()) {
      return absl::DataLossError(absl::StrCat("sync record '", key, "' is missing"));
    }
    text += data.data;
  }
  if (base::Sha256Hex(text) == record.text_hash) return text;
  return absl::DataLossError(absl::StrCat("sync records '", PieceKey(record.text_hash, 0),
                                          "' and following are not the text that was applied"));
}

absl::StatusOr<JobRecord> DefinitionStore::FindRevision(absl::string_view revision) {
  const absl::Status not_found =
      absl::NotFoundError(absl::StrCat("no job was ever at revision '", revision, "'"));
  // What is none could not be a key either.
  if (!base::Fingerprint128::FromHex(revision).has_value()) return not_found;
  const std::string key = RevisionKey(revision);
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData data, store_->Get(key));
  if (data.version == sync::kAbsent) return not_found;
  return DecodeRecord(data.data, key);
}

absl::StatusOr<std::vector<DefinitionStore::Removal>> DefinitionStore::RemovalsOf(
    const std::vector<JobRecord>& definitions, const JobRecord* current) {
  std::set<std::string> keys;
  for (const JobRecord& record : definitions) {
    if (current == nullptr || record.revision != current->revision) {
      keys.insert(RevisionKey(record.revision));
    }
    if (current != nullptr && record.text_hash == current->text_hash) continue;
    const size_t pieces = (record.text_bytes + kPieceBytes - 1) / kPieceBytes;
    for (size_t piece = 0; piece < pieces; ++piece) keys.insert(PieceKey(record.text_hash, piece));
  }
  std::vector<Removal> removals;
  for (const std::string& key : keys) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData data, store_->Get(key));
    if (data.version != sync::kAbsent) removals.push_back({key, data.version});
  }
  return removals;
}

}  // namespace muster::job
