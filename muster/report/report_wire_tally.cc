#include "muster/report/report_wire_tally.h"

#include "muster/report/progress.h"

namespace muster::report {

v1::GetTallyResponse ToProto(const Tally& tally) {
  v1::GetTallyResponse proto;
  *proto.mutable_progress() = ToProto(tally.progress);
  proto.mutable_items_by_version()->insert(tally.items_by_version.begin(),
                                           tally.items_by_version.end());
  proto.set_items_sha256(tally.items_sha256);
  proto.set_rows_sha256(tally.rows_sha256);
  proto.set_rejections_sha256(tally.rejections_sha256);
  return proto;
}

Tally FromProto(const v1::GetTallyResponse& proto) {
  Tally tally;
  tally.progress = FromProto(proto.progress());
  tally.items_by_version.insert(proto.items_by_version().begin(), proto.items_by_version().end());
  tally.items_sha256 = proto.items_sha256();
  tally.rows_sha256 = proto.rows_sha256();
  tally.rejections_sha256 = proto.rejections_sha256();
  return tally;
}

}  // namespace muster::report
