// Where the counting of a batch stands, as the report has it and as it travels.
#pragma once

#include "muster/report/report_store.h"
#include "muster/v1/report_service.pb.h"

namespace muster::report {

v1::CountingProgress ToProto(const Progress& progress);
Progress FromProto(const v1::CountingProgress& proto);

}  // namespace muster::report
