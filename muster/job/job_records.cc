#include "muster/job/job_records.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/unknown_field_set.h"
#include "muster/base/fingerprint.h"
#include "muster/base/hex.h"
#include "muster/base/proto_time.h"
#include "muster/base/status_macros.h"
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

std::string EncodeDirectory(const JobDirectory& directory) {
  v1::JobDirectory proto;
  for (const JobRecord& job : directory.jobs) ToProto(job, proto.add_jobs());
  proto.MergeFromString(directory.unknown);
  return proto.SerializeAsString();
}

std::string EncodeRecord(const JobRecord& record) {
  v1::JobRecord proto;
  ToProto(record, &proto);
  return proto.SerializeAsString();
}

absl::StatusOr<JobDirectory> DecodeDirectory(absl::string_view data) {
  MUSTER_ASSIGN_OR_RETURN(const auto proto, Parse<v1::JobDirectory>(data, kDirectoryKey));
  JobDirectory directory;
  directory.unknown = UnknownOf(proto);
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

}  // namespace muster::job
