// SPDX-License-Identifier: Apache-2.0
#include "muster/job/job_records.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/unknown_field_set.h"
#include "muster/base/fingerprint.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/job/limits.h"
#include "muster/v1/job_record.pb.h"

namespace muster::job {
namespace {

constexpr size_t kHashBytes = 32;

std::string UnknownOf(const google::protobuf::Message& form) {
  std::string bytes;
  form.GetReflection()->GetUnknownFields(form).SerializeToString(&bytes);
  return bytes;
}

void ToProto(const JobRecord& record, v1::JobRecord* proto) {
  proto->set_name(record.name);
  proto->set_revision(record.revision);
  proto->set_text_hash(base::BytesFromHex(record.text_hash));
  proto->set_text_bytes(static_cast<uint32_t>(record.text_bytes));
  *proto->mutable_updated() = base::ToProto(record.updated);
  proto->MergeFromString(record.unknown);
}

absl::StatusOr<JobRecord> FromProto(const v1::JobRecord& proto, absl::string_view key) {
  const bool is_sound = !proto.name().empty() && proto.name().size() <= kMaxNameBytes &&
                        base::Fingerprint128::FromHex(proto.revision()).has_value() &&
                        proto.text_hash().size() == kHashBytes && proto.text_bytes() > 0 &&
                        proto.text_bytes() <= kMaxJobFileBytes;
  if (!is_sound) return absl::DataLossError(absl::StrCat("sync record '", key, "' is no job's"));
  return JobRecord{.name = proto.name(),
                   .revision = proto.revision(),
                   .text_hash = absl::BytesToHexString(proto.text_hash()),
                   .text_bytes = proto.text_bytes(),
                   .updated = base::FromProto(proto.updated()),
                   .unknown = UnknownOf(proto)};
}

template <typename Proto>
absl::StatusOr<Proto> Parse(absl::string_view data, absl::string_view key) {
  Proto proto;
  if (proto.ParseFromArray(data.data(), static_cast<int>(data.size()))) return proto;
  return absl::DataLossError(absl::StrCat("sync record '", key, "' cannot be parsed"));
}

}  // namespace

std::string RevisionKey(absl::string_view revision) {
  return absl::StrCat("jobs/revisions/", revision);
}

std::string PieceKey(absl::string_view text_hash, size_t piece) {
  return absl::StrCat("jobs/texts/", text_hash, "/", piece);
}

std::string HistoryKey(absl::string_view name) { return absl::StrCat("jobs/history/", name); }

std::string EncodeDirectory(const JobDirectory& directory) {
  v1::JobDirectory proto;
  for (const JobRecord& job : directory.jobs) ToProto(job, proto.add_jobs());
  proto.set_removals(directory.removals);
  if (directory.removed_until.has_value()) {
    *proto.mutable_removed_until() = base::ToProto(*directory.removed_until);
  }
  if (directory.began.has_value()) *proto.mutable_began() = base::ToProto(*directory.began);
  proto.MergeFromString(directory.unknown);
  return proto.SerializeAsString();
}

std::string EncodeRecord(const JobRecord& record) {
  v1::JobRecord proto;
  ToProto(record, &proto);
  return proto.SerializeAsString();
}

std::string EncodeHistory(const std::vector<JobRecord>& definitions) {
  v1::JobHistory proto;
  for (const JobRecord& record : definitions) ToProto(record, proto.add_definitions());
  return proto.SerializeAsString();
}

absl::StatusOr<JobDirectory> DecodeDirectory(absl::string_view data) {
  MUSTER_ASSIGN_OR_RETURN(const auto proto, Parse<v1::JobDirectory>(data, kDirectoryKey));
  JobDirectory directory;
  directory.unknown = UnknownOf(proto);
  directory.removals = proto.removals();
  if (proto.has_removed_until()) directory.removed_until = base::FromProto(proto.removed_until());
  if (proto.has_began()) directory.began = base::FromProto(proto.began());
  std::vector<JobRecord>& jobs = directory.jobs;
  for (const v1::JobRecord& record : proto.jobs()) {
    MUSTER_ASSIGN_OR_RETURN(JobRecord job, FromProto(record, kDirectoryKey));
    if (!jobs.empty() && jobs.back().name >= job.name) {
      return absl::DataLossError(
          absl::StrCat("sync record '", kDirectoryKey, "': job '", job.name, "' is out of order"));
    }
    jobs.push_back(std::move(job));
  }
  return directory;
}

absl::StatusOr<JobRecord> DecodeRecord(absl::string_view data, absl::string_view key) {
  MUSTER_ASSIGN_OR_RETURN(const auto proto, Parse<v1::JobRecord>(data, key));
  return FromProto(proto, key);
}

absl::StatusOr<std::vector<JobRecord>> DecodeHistory(absl::string_view data,
                                                     absl::string_view key) {
  MUSTER_ASSIGN_OR_RETURN(const auto proto, Parse<v1::JobHistory>(data, key));
  std::vector<JobRecord> definitions;
  for (const v1::JobRecord& record : proto.definitions()) {
    MUSTER_ASSIGN_OR_RETURN(definitions.emplace_back(), FromProto(record, key));
  }
  return definitions;
}

absl::StatusOr<std::vector<DeletedJob>> DecodeDeleted(absl::string_view data,
                                                      absl::string_view key) {
  MUSTER_ASSIGN_OR_RETURN(const auto proto, Parse<v1::DeletedJobs>(data, key));
  std::vector<DeletedJob> jobs;
  for (const v1::DeletedJob& job : proto.jobs()) {
    jobs.push_back({job.name(), base::FromProto(job.deleted())});
  }
  return jobs;
}

std::string EncodeDeleted(const std::vector<DeletedJob>& jobs) {
  v1::DeletedJobs proto;
  for (const DeletedJob& job : jobs) {
    v1::DeletedJob* const stored = proto.add_jobs();
    stored->set_name(job.name);
    *stored->mutable_deleted() = base::ToProto(job.deleted);
  }
  return proto.SerializeAsString();
}

absl::Status Rewrite(sync::OptimisticSyncStore* store, absl::string_view key, Rewriting rewriting) {
  for (int race = 0; race < kMaxRaces; ++race) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData there, store->Get(key));
    MUSTER_ASSIGN_OR_RETURN(const std::optional<std::string> data, rewriting(there));
    if (!data.has_value()) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const bool is_written, store->TryWrite(key, *data, there.version));
    if (is_written) return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("sync record '", key, "': others were first ",
                                             kMaxRaces, " times in a row; try again"));
}

}  // namespace muster::job
