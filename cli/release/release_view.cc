// SPDX-License-Identifier: Apache-2.0
#include "cli/release/release_view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

ordered_json SecondsJson(const std::optional<absl::Duration>& duration) {
  return duration.has_value() ? ordered_json(absl::ToDoubleSeconds(*duration)) : ordered_json();
}

std::string InWords(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Microseconds(100)));
}

}  // namespace

int ReleaseView::left() const {
  const auto& workers = status_.workers();
  return static_cast<int>(std::count_if(workers.begin(), workers.end(),
                                        [](const auto& one) { return one.has_left(); }));
}

int ReleaseView::parked() const { return status_.workers_size() - left(); }

std::optional<absl::Duration> ReleaseView::LeftAfter(const v1::ReleaseWorker& worker) const {
  if (!worker.has_left() || !status_.has_released()) return std::nullopt;
  const absl::Time released = base::FromProto(status_.released());
  const bool waited =
      worker.epoch() == status_.released_epoch() && base::FromProto(worker.parked()) <= released;
  if (!waited) return std::nullopt;
  return std::max(absl::ZeroDuration(), base::FromProto(worker.left()) - released);
}

std::optional<absl::Duration> ReleaseView::last_left_after() const {
  std::optional<absl::Duration> last;
  for (const v1::ReleaseWorker& worker : status_.workers())
    last = std::max(last, LeftAfter(worker));
  return last;
}

std::string ReleaseView::EpochInWords() const {
  const bool is_open = status_.released_epoch() >= status_.armed_epoch();
  return absl::StrCat("release ", status_.name(), ": epoch ", status_.armed_epoch(),
                      is_open ? " released " : " armed",
                      is_open ? TimeCell(status_.has_released(), status_.released()) : "");
}

std::string ReleaseView::ReleasedSummary() const {
  return absl::StrCat(EpochInWords(), "; ", parked(), parked() == 1 ? " was" : " were", " parked");
}

std::string ReleaseView::Summary() const {
  std::string text = absl::StrCat(EpochInWords(), "; ", left(), " left");
  if (const auto last = last_left_after(); last.has_value()) {
    absl::StrAppend(&text, ", the last after ", InWords(*last));
  }
  return absl::StrCat(text, "; ", parked(), " parked");
}

Table ReleaseView::Workers() const {
  Table table;
  table.AddColumns({"instance", "state"});
  table.AddColumn("epoch", Align::kRight);
  table.AddColumns({"parked", "left"});
  table.AddColumn("after", Align::kRight);
  for (const v1::ReleaseWorker& worker : status_.workers()) {
    const auto after = LeftAfter(worker);
    table.AddRow({worker.instance(), worker.has_left() ? "left" : "parked",
                  absl::StrCat(worker.epoch()), TimeCell(true, worker.parked()),
                  TimeCell(worker.has_left(), worker.left()),
                  after.has_value() ? InWords(*after) : "-"});
  }
  return table;
}

ordered_json ReleaseView::Json() const {
  ordered_json workers = ordered_json::array();
  for (const v1::ReleaseWorker& worker : status_.workers()) {
    workers.push_back({{"instance", worker.instance()},
                       {"state", worker.has_left() ? "left" : "parked"},
                       {"epoch", worker.epoch()},
                       {"parked", TimeJson(true, worker.parked())},
                       {"left", TimeJson(worker.has_left(), worker.left())},
                       {"left_after_seconds", SecondsJson(LeftAfter(worker))}});
  }
  return {{"release", status_.name()},
          {"armed_epoch", status_.armed_epoch()},
          {"released_epoch", status_.released_epoch()},
          {"armed", TimeJson(status_.has_armed(), status_.armed())},
          {"released", TimeJson(status_.has_released(), status_.released())},
          {"workers_parked", parked()},
          {"workers_left", left()},
          {"last_left_after_seconds", SecondsJson(last_left_after())},
          {"workers", std::move(workers)}};
}

}  // namespace muster::cli
