// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/schema_proto.h"

#include "muster/base/output_proto.h"

namespace muster::handler {
namespace {

void Fill(const MeasureSchema& measure, v1::MeasureSchema* proto) {
  const bool is_int = measure.type == MeasureSchema::Type::kInt;
  proto->set_name(measure.name);
  proto->set_type(is_int ? v1::MEASURE_TYPE_INT : v1::MEASURE_TYPE_DECIMAL);
  proto->set_scale(measure.scale);
}

void Fill(const GroupSchema& group, v1::GroupSchema* proto) {
  proto->set_name(group.name);
  for (const std::string& key : group.keys) proto->add_keys(key);
  for (const MeasureSchema& measure : group.measures) Fill(measure, proto->add_measures());
}

}  // namespace

v1::JobSchema ToProto(const JobSchema& schema) {
  v1::JobSchema proto;
  proto.set_job(schema.job);
  proto.set_revision(schema.revision);
  for (const std::string& column : schema.columns) proto.add_columns(column);
  for (const GroupSchema& group : schema.groups) Fill(group, proto.add_groups());
  for (const base::OutputColumn& column : schema.outputs) {
    *proto.add_outputs() = base::ToProto(column);
  }
  return proto;
}

}  // namespace muster::handler
