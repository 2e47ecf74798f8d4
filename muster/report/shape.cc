#include "muster/report/shape.h"

#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/decimal.h"
#include "muster/base/status_macros.h"

namespace muster::report {
namespace {

using Names = absl::flat_hash_set<std::string>;

absl::Status Claim(absl::string_view name, absl::string_view what, Names* taken) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " name '", name, "' must have 1 to ", kMaxNameBytes, " bytes"));
  }
  if (name.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(what, " name contains a NUL byte"));
  }
  // SQL takes Country and country for one column.
  if (!taken->insert(absl::AsciiStrToLower(name)).second) {
    return absl::InvalidArgumentError(absl::StrCat(what, " name '", name, "' is used twice"));
  }
  return absl::OkStatus();
}

absl::Status ValidateScale(const MeasureShape& measure) {
  const int most = measure.is_int ? 0 : base::Decimal::kMaxScale;
  if (measure.scale >= 0 && measure.scale <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("measure '", measure.name, "' has scale ",
                                                 measure.scale, ", which is not in 0..", most));
}

absl::Status ValidateGroup(const GroupShape& group) {
  if (group.keys.empty()) return absl::InvalidArgumentError("a group needs a key");
  if (group.measures.empty()) return absl::InvalidArgumentError("a group needs a measure");
  if (group.keys.size() + group.measures.size() > kMaxColumns) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group has at most ", kMaxColumns, " keys and measures"));
  }
  Names columns;
  for (const std::string& key : group.keys) {
    MUSTER_RETURN_IF_ERROR(Claim(key, "key", &columns));
  }
  for (const MeasureShape& measure : group.measures) {
    MUSTER_RETURN_IF_ERROR(Claim(measure.name, "measure", &columns));
    MUSTER_RETURN_IF_ERROR(ValidateScale(measure));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateBatchShape(const BatchShape& shape) {
  if (shape.batch > uint64_t{std::numeric_limits<int64_t>::max()}) {
    return absl::InvalidArgumentError(absl::StrCat("batch ", shape.batch, " is out of range"));
  }
  if (shape.job.empty() || shape.job_revision.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch ", shape.batch, " names no job or no job revision"));
  }
  if (shape.groups.size() > kMaxGroups) {
    return absl::InvalidArgumentError(absl::StrCat("a job has at most ", kMaxGroups, " groups"));
  }
  Names names;
  for (const GroupShape& group : shape.groups) {
    MUSTER_RETURN_IF_ERROR(Claim(group.name, "group", &names));
    MUSTER_RETURN_IF_ERROR(
        base::Annotate(ValidateGroup(group), absl::StrCat("group '", group.name, "'")));
  }
  return absl::OkStatus();
}

}  // namespace muster::report
