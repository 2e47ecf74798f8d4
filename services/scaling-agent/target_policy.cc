// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/target_policy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {
namespace {

using scaling::rules::MetricLoss;

bool AreTheSame(const scaling::policy::DeadlineOptions& a,
                const scaling::policy::DeadlineOptions& b) {
  return scaling::recording::EncodeHeader({"", a}) == scaling::recording::EncodeHeader({"", b});
}

}  // namespace

scaling::policy::DeadlineOptions OptionsOf(const scaling::rules::Rules& rules,
                                           const scaling::rules::Target& target) {
  scaling::policy::DeadlineOptions options;
  options.sla = target.sla_max.value_or(kDefaultSla);
  options.aim = target.sla_aim;
  options.patience = target.patience;
  options.forecast = target.forecast;
  if (rules.stabilizer.idle_hold.has_value()) options.hold = 0;
  options.on_metric_loss.after = rules.on_metric_loss.after;
  options.on_metric_loss.keep_current = rules.on_metric_loss.keep != MetricLoss::Keep::kFloor;
  return options;
}

TargetPolicy::TargetPolicy(std::string target, RecordingPlace place)
    : target_(std::move(target)), place_(std::move(place)) {}

absl::Status TargetPolicy::Begin(const RulesInForce& rules) {
  const scaling::rules::Target* const target = rules.rules->FindTarget(target_);
  if (target == nullptr) {
    return absl::NotFoundError(absl::StrCat("the rules have no target '", target_, "'"));
  }
  const scaling::policy::DeadlineOptions options = OptionsOf(*rules.rules, *target);
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<scaling::policy::Policy> deadline,
                          scaling::policy::MakeDeadlinePolicy(options));
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<scaling::rules::RuledPolicy> policy,
      scaling::rules::RuledPolicy::Make(rules.rules, target_, std::move(deadline)));
  const std::optional<scaling::policy::Spending> spent = Spent();
  policy_ = std::move(policy);
  options_ = options;
  BeginRecording();
  Record(scaling::recording::RecordedRules{rules.text});
  if (!spent.has_value()) return absl::OkStatus();
  policy_->Resume(*spent);
  Record(*spent);
  return absl::OkStatus();
}

std::optional<scaling::policy::Spending> TargetPolicy::Spent() const {
  return policy_ != nullptr ? policy_->spending() : account_.spending();
}

void TargetPolicy::Pay(absl::Time now, int replicas) {
  const std::optional<scaling::policy::Spending> spent = Spent();
  policy_.reset();
  account_ = scaling::rules::BudgetAccount();
  // As for deciding: when time steps back, spending starts anew.
  if (spent.has_value() && spent->until <= now) account_.Resume(*spent);
  account_.Charge(now, replicas);
}

absl::Status TargetPolicy::Use(const RulesInForce& rules) {
  const scaling::rules::Target* const target = rules.rules->FindTarget(target_);
  const bool is_kept = policy_ != nullptr && target != nullptr &&
                       AreTheSame(OptionsOf(*rules.rules, *target), options_);
  if (!is_kept) return Begin(rules);
  MUSTER_RETURN_IF_ERROR(policy_->Use(rules.rules));
  Record(scaling::recording::RecordedRules{rules.text});
  return absl::OkStatus();
}

void TargetPolicy::Announce(const scaling::policy::Announcement& announcement) {
  Record(announcement);
  policy_->Announce(announcement);
}

scaling::policy::Decision TargetPolicy::Decide(const scaling::policy::Observation& observation) {
  const scaling::policy::Decision decision = policy_->Decide(observation);
  Record(scaling::recording::RecordedStep{observation, decision});
  return decision;
}

absl::Status TargetPolicy::recording() const {
  if (unrecorded_ == 0) return recording_;
  return absl::Status(recording_.code(),
                      absl::StrCat(recording_.message(), "; ", unrecorded_,
                                   " of what was seen and told since is not in it"));
}

void TargetPolicy::BeginRecording() {
  writer_.reset();
  recording_ = absl::OkStatus();
  unrecorded_ = 0;
  if (place_.path.empty()) return;
  for (int number = 1; number <= kMaxRecordings; ++number) {
    const std::string path = number == 1 ? place_.path : absl::StrCat(place_.path, ".", number);
    auto opened =
        scaling::recording::RecordingWriter::Open(path, {target_, options_}, place_.most_bytes);
    if (absl::IsAlreadyExists(opened.status())) continue;
    if (!opened.ok()) return EndRecording(opened.status());
    writer_ = *std::move(opened);
    return;
  }
  EndRecording(absl::ResourceExhaustedError(
      absl::StrCat(place_.path, ": there are ", kMaxRecordings, " recordings already")));
}

void TargetPolicy::Record(const scaling::recording::RecordedEvent& event) {
  if (writer_ == nullptr) {
    if (!recording_.ok()) ++unrecorded_;
    return;
  }
  const absl::Status written = writer_->Write(event);
  if (written.ok()) return;
  EndRecording(written);
  ++unrecorded_;
}

// A recording with a gap cannot be replayed, so nothing is appended after an error.
void TargetPolicy::EndRecording(const absl::Status& why) {
  writer_.reset();
  recording_ = why;
  base::Log(base::kWarning, "the recording ends here",
            {{"target", target_}, {"why", why.ToString()}});
}

}  // namespace muster::scaling_agent
