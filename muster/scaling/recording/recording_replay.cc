// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/recording/recording_replay.h"

#include <variant>

#include "muster/base/status.h"

namespace muster::scaling::recording {
namespace {

// Compares decisions in their written form, so that fields that are not recorded do not count.
void Compare(const RecordedStep& step, const RecordingReader& reader,
             scaling::policy::Policy* policy, RecordingVerdict* verdict) {
  ++verdict->decisions;
  const std::string recorded = EncodeDecision(step.decision);
  const std::string replayed = EncodeDecision(policy->Decide(step.observation));
  if (recorded == replayed || ++verdict->differences > 1) return;
  verdict->first_difference = {reader.file(), reader.line(), step.observation.now, recorded,
                               replayed};
}

}  // namespace

absl::StatusOr<RecordingVerdict> ReplayRecording(
    RecordingReader* reader, scaling::policy::Policy* policy,
    const std::function<absl::Status(const std::string&)>& use_rules,
    const std::function<void(const scaling::policy::Spending&)>& resume) {
  RecordingVerdict verdict;
  verdict.first_part = reader->header().part;
  if (!reader->header().rules.empty()) MUSTER_RETURN_IF_ERROR(use_rules(reader->header().rules));
  while (verdict.first_part > 1 || !verdict.first_difference.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(const std::optional<RecordedEvent> event, reader->Next());
    if (!event.has_value()) break;
    if (const auto* const announcement = std::get_if<scaling::policy::Announcement>(&*event)) {
      ++verdict.announcements;
      policy->Announce(*announcement);
    } else if (const auto* const rules = std::get_if<RecordedRules>(&*event)) {
      MUSTER_RETURN_IF_ERROR(use_rules(rules->text));
    } else if (const auto* const spending = std::get_if<scaling::policy::Spending>(&*event)) {
      resume(*spending);
    } else {
      Compare(std::get<RecordedStep>(*event), *reader, policy, &verdict);
    }
  }
  return verdict;
}

}  // namespace muster::scaling::recording
