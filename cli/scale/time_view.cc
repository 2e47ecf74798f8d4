#include "cli/scale/time_view.h"

#include "absl/strings/str_cat.h"
#include "cli/output/batch_view.h"
#include "muster/base/proto_time.h"
#include "muster/scaling/policy/explain.h"

namespace muster::cli {

using nlohmann::ordered_json;

std::string FromNow(absl::Time time, absl::Time now) {
  const absl::Duration left = time - now;
  if (absl::AbsDuration(left) < absl::Milliseconds(50)) return "now";
  if (left > absl::ZeroDuration()) return absl::StrCat("in ", scaling::policy::ShowDuration(left));
  return absl::StrCat(scaling::policy::ShowDuration(-left), " ago");
}

std::string DurationCell(const google::protobuf::Duration& duration) {
  return scaling::policy::ShowDuration(base::FromProto(duration));
}

ordered_json TimeJson(bool has, const google::protobuf::Timestamp& time) {
  return has ? ordered_json(Rfc3339(base::FromProto(time))) : ordered_json();
}

ordered_json SecondsJson(bool has, const google::protobuf::Duration& duration) {
  if (!has) return {};
  return absl::ToDoubleSeconds(base::FromProto(duration));
}

}  // namespace muster::cli
