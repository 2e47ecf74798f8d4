// Going through the rows of a batch, group by group.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/report/report_store.h"
#include "muster/report/shape.h"

namespace muster::report {

struct RowVisitor {
  // A group begins; its rows follow. An error ends the visit with it.
  std::function<absl::Status(const GroupShape&)> on_group;
  std::function<void(const GroupRow&)> on_row;
};

// Visits `group` of a batch, or all groups in the job's order when it is empty. NotFound: no such
// batch, or no such group, naming those that it has; nothing was visited then.
absl::Status VisitRows(ReportReader& reader, uint64_t batch, absl::string_view group,
                       const RowVisitor& visitor);

}  // namespace muster::report
