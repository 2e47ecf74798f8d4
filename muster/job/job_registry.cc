// SPDX-License-Identifier: Apache-2.0
#include "muster/job/job_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status.h"
#include "muster/job/job_file.h"
#include "muster/rpc/status.h"

namespace muster::job {

namespace {

// Where the job of that name is, or belongs.
template <typename Records>
auto Place(Records* jobs, absl::string_view name) {
  return std::lower_bound(
      jobs->begin(), jobs->end(), name,
      [](const JobRecord& job, absl::string_view wanted) { return job.name < wanted; });
}

// nullptr: there is no such job.
template <typename Records>
auto Find(Records* jobs, absl::string_view name) {
  const auto it = Place(jobs, name);
  return it != jobs->end() && it->name == name ? &*it : nullptr;
}

absl::Status NoSuchJob(absl::string_view name) {
  return rpc::WithReason(absl::NotFoundError(absl::StrCat("no job '", name, "'")),
                         {.reason = "NO_SUCH_JOB", .metadata = {{"job", std::string(name)}}});
}

// `current` is what the job's revision is, empty when there is none.
absl::Status RequireRevision(const std::optional<std::string>& expected, const std::string& current,
                             absl::string_view name) {
  if (!expected.has_value() || *expected == current) return absl::OkStatus();
  const std::string is = current.empty() ? "does not exist" : "is at revision " + current;
  const std::string wanted = expected->empty() ? "none was expected" : "not at " + *expected;
  return rpc::WithReason(absl::AbortedError(absl::StrCat("job '", name, "' ", is, ", ", wanted)),
                         {.reason = "REVISION_CHANGED", .metadata = {{"revision", current}}});
}

// Whether `jobs` with one more, or a longer one, are too many.
absl::Status RequireRoom(const std::vector<JobRecord>& jobs) {
  if (jobs.size() > kMaxJobs) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", kMaxJobs, " jobs already; delete one"));
  }
  uint64_t bytes = 0;
  for (const JobRecord& job : jobs) bytes += job.text_bytes;
  if (bytes <= kMaxTotalBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("the definitions of all jobs would have ", bytes,
                                                   " bytes; at most ", kMaxTotalBytes,
                                                   " are allowed"));
}

// Puts `wanted` among `jobs` and says in `applied` what that changes. One that is there already
// stays as it is, and `wanted` becomes so.
absl::Status Put(const std::optional<std::string>& expected_revision, std::vector<JobRecord>* jobs,
                 JobRecord* wanted, Applied* applied) {
  JobRecord* const job = Find(jobs, wanted->name);
  const std::string before = job == nullptr ? "" : job->revision;
  applied->changed = job == nullptr || job->text_hash != wanted->text_hash;
  applied->revised = before != wanted->revision;
  if (!applied->changed) {
    *wanted = *job;
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(RequireRevision(expected_revision, before, wanted->name));
  if (job != nullptr) {
    wanted->unknown = job->unknown;
    *job = *wanted;
  } else {
    jobs->insert(Place(jobs, wanted->name), *wanted);
  }
  return RequireRoom(*jobs);
}

// Whether a job that `directory` does not have was deleted, if a batch of it began at `batch`: as
// Restore.
bool WasDeleted(const JobDirectory& directory, absl::Time batch) {
  return directory.removed_until.has_value() && batch < *directory.removed_until &&
         (!directory.began.has_value() || *directory.began <= batch);
}

}  // namespace

JobRegistry::JobRegistry(sync::OptimisticSyncStore* store, base::Clock* clock)
    : store_(store), clock_(clock), definitions_(store) {}

absl::StatusOr<Applied> JobRegistry::Apply(absl::string_view definition,
                                           const std::optional<std::string>& expected_revision) {
  Applied applied;
  MUSTER_ASSIGN_OR_RETURN(applied.job, job::ParseJob(definition, ""));
  JobRecord wanted{.name = applied.job.name,
                   .revision = applied.job.revision,
                   .text_hash = base::Sha256Hex(definition),
                   .text_bytes = definition.size(),
                   .updated = clock_->Now()};
  std::optional<uint64_t> written_at;  // the directory's `removals` then
  const auto change = [&](JobDirectory* directory) -> absl::StatusOr<bool> {
    std::vector<JobRecord> definitions;
    // One that an older muster has applied is in no history.
    if (const JobRecord* const before = Find(&directory->jobs, wanted.name)) {
      definitions.push_back(*before);
    }
    MUSTER_RETURN_IF_ERROR(Put(expected_revision, &directory->jobs, &wanted, &applied));
    // Each time: one that lost a race replaces the winner's definition.
    const bool replaces = applied.changed && !definitions.empty();
    if (replaces) MUSTER_RETURN_IF_ERROR(NoteLeft(kReplacedKey, wanted.name));
    definitions.push_back(wanted);
    if (applied.changed) MUSTER_RETURN_IF_ERROR(definitions_.NoteHistory(definitions));
    if (written_at == directory->removals) return applied.changed;
    // Also when nothing changes: it restores lost pieces of the text.
    MUSTER_RETURN_IF_ERROR(definitions_.WriteText(definition, wanted.text_hash, applied.changed));
    MUSTER_RETURN_IF_ERROR(definitions_.WriteRevision(wanted, applied.changed));
    written_at = directory->removals;
    return applied.changed;
  };
  MUSTER_RETURN_IF_ERROR(ChangeDirectory(change));
  cache_.Add(wanted.text_hash, applied.job);
  cache_.NoteCurrent(wanted.name, wanted.text_hash);
  applied.entry = {.name = wanted.name,
                   .definition = std::string(definition),
                   .revision = wanted.revision,
                   .updated = wanted.updated};
  return applied;
}

absl::StatusOr<std::vector<JobEntry>> JobRegistry::List() {
  MUSTER_ASSIGN_OR_RETURN(const JobDirectory directory, ReadDirectory());
  std::vector<JobEntry> entries;
  for (const JobRecord& record : directory.jobs) {
    MUSTER_ASSIGN_OR_RETURN(JobEntry entry, ReadEntry(record));
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::StatusOr<std::vector<JobSummary>> JobRegistry::Summaries() {
  MUSTER_ASSIGN_OR_RETURN(const JobDirectory directory, ReadDirectory());
  std::vector<JobSummary> summaries;
  for (const JobRecord& record : directory.jobs) {
    summaries.push_back({record.name, record.revision, record.updated});
  }
  return summaries;
}

absl::StatusOr<JobEntry> JobRegistry::Get(absl::string_view name) {
  MUSTER_ASSIGN_OR_RETURN(const JobDirectory directory, ReadDirectory());
  const JobRecord* const record = Find(&directory.jobs, name);
  if (record == nullptr) return NoSuchJob(name);
  return ReadEntry(*record);
}

absl::StatusOr<JobDefinition> JobRegistry::GetDefinition(absl::string_view name) {
  MUSTER_ASSIGN_OR_RETURN(const JobDirectory directory, ReadDirectory());
  const JobRecord* const record = Find(&directory.jobs, name);
  if (record == nullptr) return NoSuchJob(name);
  std::optional<JobDefinition> job = cache_.Find(record->text_hash);
  if (!job.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(const JobEntry entry, ReadEntry(*record));
    MUSTER_ASSIGN_OR_RETURN(job, job::ParseJob(entry.definition, entry.name));
    cache_.Add(record->text_hash, *job);
  }
  cache_.NoteCurrent(record->name, record->text_hash);
  return *std::move(job);
}

absl::StatusOr<bool> JobRegistry::IsCurrent(const JobDefinition& job) {
  MUSTER_ASSIGN_OR_RETURN(const JobDirectory directory, ReadDirectory());
  const JobRecord* const record = Find(&directory.jobs, job.name);
  return record != nullptr && record->text_hash == base::Sha256Hex(job.text);
}

absl::StatusOr<JobDefinition> JobRegistry::Parse(absl::string_view text, absl::string_view name) {
  const std::string hash = base::Sha256Hex(text);
  if (auto remembered = cache_.Find(hash)) return *std::move(remembered);
  MUSTER_ASSIGN_OR_RETURN(JobDefinition job, job::ParseJob(text, name));
  cache_.Add(hash, job);
  return job;
}

absl::StatusOr<JobEntry> JobRegistry::FindRevision(absl::string_view revision) {
  MUSTER_ASSIGN_OR_RETURN(const JobRecord record, definitions_.FindRevision(revision));
  return ReadEntry(record);
}

absl::StatusOr<bool> JobRegistry::Restore(const JobEntry& entry) {
  const absl::Status found = FindRevision(entry.revision).status();
  if (!absl::IsNotFound(found) && !absl::IsDataLoss(found)) {
    MUSTER_RETURN_IF_ERROR(found);
    return false;
  }
  const JobRecord record{.name = entry.name,
                         .revision = entry.revision,
                         .text_hash = base::Sha256Hex(entry.definition),
                         .text_bytes = entry.definition.size(),
                         .updated = entry.updated};
  std::optional<uint64_t> written_at;
  bool was_deleted = false;
  const auto change = [&](JobDirectory* directory) -> absl::StatusOr<bool> {
    if (written_at != directory->removals) {
      MUSTER_RETURN_IF_ERROR(definitions_.NoteHistory({record}));
      MUSTER_RETURN_IF_ERROR(
          definitions_.WriteText(entry.definition, record.text_hash, /*anew=*/true));
      written_at = directory->removals;
    }
    std::vector<JobRecord>& jobs = directory->jobs;
    JobRecord* const job = Find(&jobs, entry.name);
    was_deleted = job == nullptr && WasDeleted(*directory, entry.updated);
    if (was_deleted || (job != nullptr && job->updated >= entry.updated)) return false;
    if (job == nullptr) {
      jobs.insert(Place(&jobs, entry.name), record);
    } else {
      *job = record;
    }
    MUSTER_RETURN_IF_ERROR(RequireRoom(jobs));
    return true;
  };
  MUSTER_RETURN_IF_ERROR(ChangeDirectory(change));
  if (was_deleted) MUSTER_RETURN_IF_ERROR(NoteLeft(kDeletedKey, entry.name));
  // Last, because a Restore that finds the revision skips everything else.
  MUSTER_RETURN_IF_ERROR(definitions_.WriteRevision(record, /*anew=*/true));
  return true;
}

// Notes the job first: a process that dies in between leaves a note of a job that is there, which
// whoever looks after deleted jobs forgets.
absl::Status JobRegistry::Delete(absl::string_view name) {
  MUSTER_ASSIGN_OR_RETURN(const JobDirectory directory, ReadDirectory());
  const JobRecord* const job = Find(&directory.jobs, name);
  if (job == nullptr) return NoSuchJob(name);
  MUSTER_RETURN_IF_ERROR(definitions_.NoteHistory({*job}));  // an older muster may have applied it
  MUSTER_RETURN_IF_ERROR(NoteLeft(kDeletedKey, name));
  return ChangeDirectory([&](JobDirectory* changed) -> absl::StatusOr<bool> {
    if (Find(&changed->jobs, name) == nullptr) return NoSuchJob(name);
    changed->jobs.erase(Place(&changed->jobs, name));
    return true;
  });
}

absl::StatusOr<bool> JobRegistry::RemoveDefinitions(absl::string_view name, IsNeeded is_needed) {
  const std::string key = HistoryKey(name);
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData history, store_->Get(key));
  if (history.version == sync::kAbsent) return true;
  MUSTER_ASSIGN_OR_RETURN(std::vector<JobRecord> definitions, DecodeHistory(history.data, key));
  MUSTER_ASSIGN_OR_RETURN(const JobDirectory directory, ReadDirectory());
  const JobRecord* const current = Find(&directory.jobs, name);
  const std::string kept = current == nullptr ? "" : current->text_hash;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<DefinitionStore::Removal> removals,
                          definitions_.RemovalsOf(definitions, current));
  MUSTER_ASSIGN_OR_RETURN(const bool needed,
                          is_needed(current == nullptr ? "" : current->revision));
  if (needed) return false;
  MUSTER_ASSIGN_OR_RETURN(const bool stays_so, Fence(name, kept));
  if (!stays_so) return false;
  for (const DefinitionStore::Removal& removal : removals) {
    MUSTER_ASSIGN_OR_RETURN(const bool removed, store_->TryDelete(removal.key, removal.version));
    if (!removed) return false;
  }
  if (current == nullptr) return store_->TryDelete(key, history.version);
  return store_->TryWrite(key, EncodeHistory({*current}), history.version);
}

absl::StatusOr<bool> JobRegistry::Fence(absl::string_view name, const std::string& text_hash) {
  bool stays_so = false;
  MUSTER_RETURN_IF_ERROR(ChangeDirectory([&](JobDirectory* directory) -> absl::StatusOr<bool> {
    const JobRecord* const job = Find(&directory->jobs, name);
    stays_so = (job == nullptr ? "" : job->text_hash) == text_hash;
    ++directory->removals;
    if (job == nullptr) {
      directory->removed_until =
          std::max(clock_->Now(), directory->removed_until.value_or(absl::InfinitePast()));
    }
    return stays_so;
  }));
  return stays_so;
}

absl::StatusOr<bool> JobRegistry::Has(absl::string_view name) {
  MUSTER_ASSIGN_OR_RETURN(const JobDirectory directory, ReadDirectory());
  return Find(&directory.jobs, name) != nullptr;
}

absl::StatusOr<std::vector<DeletedJob>> JobRegistry::Deleted() { return ListLeft(kDeletedKey); }

absl::Status JobRegistry::ForgetDeleted(const DeletedJob& job) {
  return ForgetLeft(kDeletedKey, job);
}

absl::StatusOr<std::vector<DeletedJob>> JobRegistry::Replaced() { return ListLeft(kReplacedKey); }

absl::Status JobRegistry::ForgetReplaced(const DeletedJob& job) {
  return ForgetLeft(kReplacedKey, job);
}

absl::StatusOr<std::vector<DeletedJob>> JobRegistry::ListLeft(absl::string_view key) {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData data, store_->Get(key));
  return DecodeDeleted(data.data, key);
}

absl::Status JobRegistry::NoteLeft(absl::string_view key, absl::string_view name) {
  return ChangeLeft(key, [&](std::vector<DeletedJob>* jobs) {
    std::erase_if(*jobs, [&](const DeletedJob& job) { return job.name == name; });
    if (jobs->size() >= kMaxDeleted) jobs->erase(jobs->begin());
    jobs->push_back({std::string(name), clock_->Now()});
    return true;
  });
}

absl::Status JobRegistry::ForgetLeft(absl::string_view key, const DeletedJob& job) {
  return ChangeLeft(key, [&](std::vector<DeletedJob>* jobs) { return std::erase(*jobs, job) > 0; });
}

absl::Status JobRegistry::ChangeLeft(absl::string_view key,
                                     absl::FunctionRef<bool(std::vector<DeletedJob>*)> change) {
  return Rewrite(store_, key, [&](const auto& there) -> absl::StatusOr<std::optional<std::string>> {
    // One that cannot be read is written anew: it only helps to tidy up.
    std::vector<DeletedJob> jobs =
        DecodeDeleted(there.data, key).value_or(std::vector<DeletedJob>());
    if (!change(&jobs)) return std::nullopt;
    return EncodeDeleted(jobs);
  });
}

absl::StatusOr<JobDirectory> JobRegistry::ReadDirectory() {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData data, store_->Get(kDirectoryKey));
  return DecodeDirectory(data.data);
}

absl::Status JobRegistry::ChangeDirectory(
    absl::FunctionRef<absl::StatusOr<bool>(JobDirectory*)> change) {
  const auto rewrite =
      [&](const sync::VersionedData& there) -> absl::StatusOr<std::optional<std::string>> {
    MUSTER_ASSIGN_OR_RETURN(JobDirectory directory, DecodeDirectory(there.data));
    if (there.version == sync::kAbsent) directory.began = clock_->Now();
    MUSTER_ASSIGN_OR_RETURN(const bool is_changed, change(&directory));
    if (!is_changed) return std::nullopt;
    return EncodeDirectory(directory);
  };
  return Rewrite(store_, kDirectoryKey, rewrite);
}

absl::StatusOr<JobEntry> JobRegistry::ReadEntry(const JobRecord& record) {
  absl::StatusOr<std::string> text = definitions_.ReadText(record);
  if (!text.ok()) {
    return base::Annotate(text.status(), absl::StrCat("definition of job '", record.name, "'"));
  }
  return JobEntry{.name = record.name,
                  .definition = *std::move(text),
                  .revision = record.revision,
                  .updated = record.updated};
}

}  // namespace muster::job
