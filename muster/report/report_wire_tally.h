// What is counted of a batch at one moment, as the report has it and as it travels.
#pragma once

#include "muster/report/tally.h"
#include "muster/v1/report_service.pb.h"

namespace muster::report {

v1::GetTallyResponse ToProto(const Tally& tally);
Tally FromProto(const v1::GetTallyResponse& proto);

}  // namespace muster::report
