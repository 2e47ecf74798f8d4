// What is counted of a batch at one moment, as the report has it and as it travels.
#pragma once

#include "muster/report/tally.h"
#include "muster/v1/report_service.pb.h"

namespace muster::report_wire {

v1::GetTallyResponse ToProto(const report::Tally& tally);
report::Tally FromProto(const v1::GetTallyResponse& proto);

}  // namespace muster::report_wire
