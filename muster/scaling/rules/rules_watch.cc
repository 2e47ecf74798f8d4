// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/rules_watch.h"

#include <string>
#include <utility>

#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/scaling/rules/rules_file.h"

namespace muster::scaling::rules {

namespace {

void LogWarnings(const Rules& rules, absl::string_view file_name) {
  for (const std::string& warning : WarningsOf(rules, file_name)) {
    base::Log(base::kWarning, "the rules are understood, but", {{"where", warning}});
  }
}

}  // namespace

ActiveRules::ActiveRules(std::string file_name, Rules rules, std::string text)
    : file_name_(std::move(file_name)) {
  LogWarnings(rules, file_name_);
  state_.rules = std::make_shared<const Rules>(std::move(rules));
  state_.text = std::move(text);
}

absl::Status ActiveRules::Offer(absl::string_view text) {
  absl::StatusOr<Rules> rules = ParseRules(text, file_name_);
  if (!rules.ok()) {
    Refuse(rules.status());
    return rules.status();
  }
  LogWarnings(*rules, file_name_);
  auto sound = std::make_shared<const Rules>(*std::move(rules));
  base::MutexLock lock(&mu_);
  state_.rules = std::move(sound);
  state_.text = std::string(text);
  ++state_.revision;
  state_.refusal = absl::OkStatus();
  return absl::OkStatus();
}

void ActiveRules::Refuse(const absl::Status& why) {
  base::MutexLock lock(&mu_);
  ++state_.refusals;
  state_.refusal = why;
}

ActiveRules::State ActiveRules::state() const {
  base::MutexLock lock(&mu_);
  return state_;
}

RulesWatch::RulesWatch(std::string path, std::string text, Rules rules, absl::Duration period,
                       base::Clock* clock)
    : path_(std::move(path)),
      period_(period),
      clock_(clock),
      active_rules_(path_, std::move(rules), text),
      last_text_(std::move(text)),
      last_look_(clock->Monotonic()) {}

absl::StatusOr<std::unique_ptr<RulesWatch>> RulesWatch::Open(std::string path,
                                                             absl::Duration period,
                                                             base::Clock* clock) {
  MUSTER_ASSIGN_OR_RETURN(std::string text, ReadRulesText(path));
  MUSTER_ASSIGN_OR_RETURN(Rules rules, ParseRules(text, path));
  return std::unique_ptr<RulesWatch>(
      new RulesWatch(std::move(path), std::move(text), std::move(rules), period, clock));
}

RulesWatch::Seen RulesWatch::Poll() {
  if (clock_->Monotonic() - last_look_ < period_) return Seen::kNothingNew;
  last_look_ = clock_->Monotonic();
  absl::StatusOr<std::string> text = ReadRulesText(path_);
  if (!text.ok()) {
    if (text.status() == last_error_) return Seen::kNothingNew;
    last_error_ = text.status();
    active_rules_.Refuse(text.status());
    return Seen::kRefused;
  }
  // When a file becomes readable again, offer it even if its text is unchanged, to end the refusal.
  const bool was_away = !last_error_.ok();
  last_error_ = absl::OkStatus();
  if (*text == last_text_ && !was_away) return Seen::kNothingNew;
  last_text_ = *std::move(text);
  return active_rules_.Offer(last_text_).ok() ? Seen::kNewRules : Seen::kRefused;
}

}  // namespace muster::scaling::rules
