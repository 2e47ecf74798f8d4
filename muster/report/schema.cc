#include "muster/report/schema.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::report {

BatchShape ShapeOf(uint64_t batch, const handler::JobSchema& schema) {
  BatchShape shape{batch, schema.job, schema.revision, {}};
  for (const handler::GroupSchema& group : schema.groups) {
    GroupShape group_shape{group.name, group.keys, {}};
    for (const handler::MeasureSchema& measure : group.measures) {
      group_shape.measures.push_back(
          {measure.name, measure.type == handler::MeasureSchema::Type::kInt, measure.scale});
    }
    shape.groups.push_back(std::move(group_shape));
  }
  return shape;
}

v1::JobSchema ToProto(const BatchShape& shape) {
  v1::JobSchema proto;
  proto.set_job(shape.job);
  proto.set_revision(shape.job_revision);
  for (const GroupShape& group : shape.groups) *proto.add_groups() = ToProto(group);
  return proto;
}

v1::GroupSchema ToProto(const GroupShape& shape) {
  v1::GroupSchema proto;
  proto.set_name(shape.name);
  for (const std::string& key : shape.keys) proto.add_keys(key);
  for (const MeasureShape& measure : shape.measures) {
    v1::MeasureSchema* const added = proto.add_measures();
    added->set_name(measure.name);
    added->set_type(measure.is_int ? v1::MEASURE_TYPE_INT : v1::MEASURE_TYPE_DECIMAL);
    added->set_scale(measure.scale);
  }
  return proto;
}

absl::StatusOr<GroupShape> FromProto(const v1::GroupSchema& proto) {
  GroupShape shape;
  shape.name = proto.name();
  shape.keys.assign(proto.keys().begin(), proto.keys().end());
  for (const v1::MeasureSchema& measure : proto.measures()) {
    if (measure.type() != v1::MEASURE_TYPE_INT && measure.type() != v1::MEASURE_TYPE_DECIMAL) {
      return absl::InvalidArgumentError(absl::StrCat(
          "group '", proto.name(), "': measure '", measure.name(), "' is neither int nor decimal"));
    }
    shape.measures.push_back(
        {measure.name(), measure.type() == v1::MEASURE_TYPE_INT, measure.scale()});
  }
  return shape;
}

}  // namespace muster::report
