#include "cli/scale/replay_recording.h"

#include <memory>
#include <optional>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/output/structured.h"
#include "muster/base/status_macros.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/recording/recording_replay.h"
#include "muster/scaling/rules/ruled_policy.h"
#include "muster/scaling/rules/rules_file.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using scaling::recording::RecordingVerdict;

// The policy of a recording's header, held to rules from when they are first recorded.
class RecordedPolicy final : public scaling::policy::Policy {
 public:
  RecordedPolicy(std::string target, std::unique_ptr<scaling::policy::Policy> policy)
      : target_(std::move(target)), free_(std::move(policy)) {}

  absl::Status Use(const std::string& text) {
    MUSTER_ASSIGN_OR_RETURN(scaling::rules::Rules parsed,
                            scaling::rules::ParseRules(text, "recorded rules"));
    const auto rules = std::make_shared<const scaling::rules::Rules>(std::move(parsed));
    if (ruled_ != nullptr) return ruled_->Use(rules);
    MUSTER_ASSIGN_OR_RETURN(ruled_,
                            scaling::rules::RuledPolicy::Make(rules, target_, std::move(free_)));
    return absl::OkStatus();
  }

  void Announce(const scaling::policy::Announcement& announcement) override {
    policy().Announce(announcement);
  }
  scaling::policy::Decision Decide(const scaling::policy::Observation& observation) override {
    return policy().Decide(observation);
  }

 private:
  scaling::policy::Policy& policy() { return ruled_ != nullptr ? *ruled_ : *free_; }

  const std::string target_;
  std::unique_ptr<scaling::policy::Policy> free_;  // until there are rules
  std::unique_ptr<scaling::rules::RuledPolicy> ruled_;
};

ordered_json DifferenceJson(const std::optional<RecordingVerdict::Difference>& difference) {
  if (!difference.has_value()) return nullptr;
  return {{"file", difference->file},
          {"line", difference->line},
          {"at", absl::FormatTime(absl::RFC3339_full, difference->at, absl::UTCTimeZone())},
          {"recorded", ordered_json::parse(difference->recorded)},
          {"replayed", ordered_json::parse(difference->replayed)}};
}

bool BeginsLate(const RecordingVerdict& verdict) { return verdict.first_part > 1; }

std::string SummaryOf(const RecordingVerdict& verdict) {
  if (!verdict.first_difference.has_value()) return "all are the same";
  if (!BeginsLate(verdict)) return "the last one differs";
  return absl::StrCat(verdict.differences, " differ, which says little: it begins with part ",
                      verdict.first_part, ", and what the policy knew before is not in it");
}

void PrintVerdict(const RecordingVerdict& verdict, const std::string& target, OutputFormat format,
                  std::ostream& out) {
  const bool same = !verdict.first_difference.has_value();
  if (IsStructured(format)) {
    const ordered_json json = {{"target", target},
                               {"announcements", verdict.announcements},
                               {"decisions", verdict.decisions},
                               {"first_part", verdict.first_part},
                               {"same", same},
                               {"differences", verdict.differences},
                               {"first_difference", DifferenceJson(verdict.first_difference)}};
    out << Structured(json, format);
    return;
  }
  out << target << ": " << verdict.decisions << " decisions, " << verdict.announcements
      << " announcements: " << SummaryOf(verdict) << "\n";
  if (same || BeginsLate(verdict)) return;
  out << "recorded: " << verdict.first_difference->recorded << "\n"
      << "replayed: " << verdict.first_difference->replayed << "\n";
}

}  // namespace

absl::Status RunRecording(const ReplayOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<scaling::recording::RecordingReader> reader,
                          scaling::recording::RecordingReader::Open(options.recording_file));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<scaling::policy::Policy> deadline,
                          scaling::policy::MakeDeadlinePolicy(reader->header().policy));
  RecordedPolicy policy(reader->header().target, std::move(deadline));
  MUSTER_ASSIGN_OR_RETURN(
      const RecordingVerdict verdict,
      scaling::recording::ReplayRecording(
          reader.get(), &policy, [&policy](const std::string& text) { return policy.Use(text); }));
  PrintVerdict(verdict, reader->header().target, options.common.output, *environment.out);
  if (!verdict.first_difference.has_value() || BeginsLate(verdict)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(verdict.first_difference->file, " line ",
                                                    verdict.first_difference->line,
                                                    ": the policy decides otherwise now"));
}

}  // namespace muster::cli
