// SPDX-License-Identifier: Apache-2.0
#include "cli/partition/partition_row.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

ordered_json OrNull(const std::string& text) {
  return text.empty() ? ordered_json() : ordered_json(text);
}

std::string State(const v1::PartitionView& view) {
  if (view.owner().empty()) return view.wanted_by().empty() ? "free" : "kept for the next";
  if (view.handing_over()) return "handing over";
  return view.wanted_by().empty() ? "owned" : "asked for";
}

}  // namespace

Table PartitionRow::Columns() {
  Table table;
  table.AddColumn("group");
  table.AddColumn("partition", Align::kRight);
  table.AddColumns({"owner", "state"});
  table.AddColumns({"epoch", "since", "checkpoint", "lag"}, Align::kRight);
  table.AddColumns({"wanted by", "pinned to"});
  return table;
}

std::vector<std::string> PartitionRow::Cells(absl::Time now) const {
  std::string since = "-";
  if (view.has_claimed()) {
    const absl::Duration owned = now - base::FromProto(view.claimed());
    since = absl::FormatDuration(absl::Trunc(owned, absl::Seconds(1)));
  }
  return {group,
          absl::StrCat(view.partition()),
          OrDash(view.owner()),
          State(view),
          absl::StrCat(view.epoch()),
          since,
          view.has_checkpoint() ? absl::StrCat(view.checkpoint().offset()) : "-",
          view.has_lag() ? absl::StrCat(view.lag()) : "-",
          OrDash(view.wanted_by()),
          OrDash(view.pinned_to())};
}

ordered_json PartitionRow::Json() const {
  ordered_json checkpoint;
  if (view.has_checkpoint()) {
    checkpoint = {{"offset", view.checkpoint().offset()},
                  {"sequence", view.checkpoint().sequence()}};
  }
  return {{"group", group},
          {"partition", view.partition()},
          {"owner", OrNull(view.owner())},
          {"state", State(view)},
          {"epoch", view.epoch()},
          {"renewal", view.renewal()},
          {"claimed", view.has_claimed() ? ordered_json(Rfc3339(base::FromProto(view.claimed())))
                                         : ordered_json()},
          {"checkpoint", checkpoint},
          {"lag", view.has_lag() ? ordered_json(view.lag()) : ordered_json()},
          {"wanted_by", OrNull(view.wanted_by())},
          {"pinned_to", OrNull(view.pinned_to())}};
}

std::string PartitionRow::Watched() const {
  v1::PartitionView watched = view;
  watched.clear_renewal();
  return watched.SerializeAsString();
}

absl::StatusOr<std::pair<std::string, int>> ParsePartition(absl::string_view text) {
  const size_t slash = text.rfind('/');
  int partition = 0;
  if (slash == absl::string_view::npos || slash == 0 ||
      !absl::SimpleAtoi(text.substr(slash + 1), &partition) || partition < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no partition like GROUP/3: the group and a number"));
  }
  return std::pair(std::string(text.substr(0, slash)), partition);
}

}  // namespace muster::cli
