#include "services/controller/report_pages.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/report_wire/rows.h"
#include "muster/report_wire/schema.h"

namespace muster::controller {
namespace {

using report::GroupRow;
using report::GroupShape;
using Write = std::function<bool(const v1::GetReportResponse&)>;

// What a row adds to its page beside its own bytes: a tag, and its length.
constexpr size_t kRowOverheadBytes = 6;

absl::Status NobodyListens() { return absl::CancelledError("the report's reader has left"); }

absl::StatusOr<std::vector<GroupShape>> Select(report::ReportReader& reader,
                                               const v1::GetReportRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<GroupShape> groups, reader.Groups(request.batch()));
  if (request.group().empty()) return groups;
  for (GroupShape& group : groups) {
    if (group.name == request.group()) return std::vector<GroupShape>{std::move(group)};
  }
  const auto append_name = [](std::string* out, const GroupShape& group) {
    out->append(group.name);
  };
  return absl::NotFoundError(absl::StrCat("batch ", request.batch(), " has no group '",
                                          request.group(), "'; it has ",
                                          absl::StrJoin(groups, ", ", append_name)));
}

// Gathers rows until a page is full.
class PageWriter {
 public:
  explicit PageWriter(const Write* write) : write_(*write) {}

  void Add(const GroupRow& row) {
    v1::PartialRow encoded = report_wire::ToProto(row);
    const size_t bytes = encoded.ByteSizeLong() + kRowOverheadBytes;
    if (bytes_ + bytes > kReportPageBytes) Flush();
    *page_.mutable_rows()->add_rows() = std::move(encoded);
    bytes_ += bytes;
  }

  void Flush() {
    if (bytes_ == 0) return;
    listening_ = listening_ && write_(page_);
    page_.Clear();
    bytes_ = 0;
  }

  bool listening() const { return listening_; }

 private:
  const Write& write_;
  v1::GetReportResponse page_;
  size_t bytes_ = 0;
  bool listening_ = true;
};

absl::Status WriteGroup(report::ReportReader& reader, const v1::GetReportRequest& request,
                        const GroupShape& group, const Write& write) {
  v1::GetReportResponse schema;
  *schema.mutable_schema() = report_wire::ToProto(group);
  if (!write(schema)) return NobodyListens();
  PageWriter pages(&write);
  int64_t left = request.max_rows() == 0 ? std::numeric_limits<int64_t>::max() : request.max_rows();
  MUSTER_RETURN_IF_ERROR(reader.ForEachRow(request.batch(), group.name, [&](const GroupRow& row) {
    if (left-- > 0 && pages.listening()) pages.Add(row);
  }));
  pages.Flush();
  return pages.listening() ? absl::OkStatus() : NobodyListens();
}

}  // namespace

absl::Status WriteReport(report::ReportReader& reader, const v1::GetReportRequest& request,
                         const Write& write) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<GroupShape> groups, Select(reader, request));
  for (const GroupShape& group : groups) {
    MUSTER_RETURN_IF_ERROR(WriteGroup(reader, request, group, write));
  }
  return absl::OkStatus();
}

}  // namespace muster::controller
