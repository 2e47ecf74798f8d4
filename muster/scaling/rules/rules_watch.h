// SPDX-License-Identifier: Apache-2.0

// RulesWatch: follows a rules file. ActiveRules: the rules in force, which only valid rules
// replace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/scaling/rules/rules.h"

namespace muster::scaling::rules {

// Thread-safe.
class ActiveRules {
 public:
  // `file_name` appears in error messages; `rules` were read from `text`.
  ActiveRules(std::string file_name, Rules rules, std::string text = "");

  // Offers the present text of the rules file. OK: its rules are in force. Otherwise returns the
  // error of ParseRules, keeps the previous rules in force and counts a refusal.
  absl::Status Offer(absl::string_view text) ABSL_LOCKS_EXCLUDED(mu_);
  // Counts a refusal because the file could not be read.
  void Refuse(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

  struct State {
    std::shared_ptr<const Rules> rules;  // shared with the threads that decide by them
    std::string text;                    // the text of the rules, as offered
    int64_t revision = 0;                // grows with each change of the rules
    int64_t refusals = 0;                // since the start
    absl::Status refusal;                // the error of the last offer; OK: that offer is in force
  };
  State state() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::string file_name_;
  mutable base::Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_);
};

// RulesWatch: reads a rules file periodically and offers changes to its active_rules.

// Compares content, not modification times: editors and mounted config maps replace files and may
// keep old times. Not thread-safe, except active_rules.
class RulesWatch {
 public:
  // Fails as LoadRulesFile does, because the watch needs valid rules to start with. `clock` is not
  // owned.
  static absl::StatusOr<std::unique_ptr<RulesWatch>> Open(std::string path, absl::Duration period,
                                                          base::Clock* clock);

  enum class Seen { kNothingNew, kNewRules, kRefused };
  // Reads the file, at most once in a period. Refuses the same mistake, or the same read error,
  // only once. A file restored to its content before the mistake counts as new rules.
  Seen Poll();

  ActiveRules& active_rules() { return active_rules_; }
  const ActiveRules& active_rules() const { return active_rules_; }

 private:
  RulesWatch(std::string path, std::string text, Rules rules, absl::Duration period,
             base::Clock* clock);

  const std::string path_;
  const absl::Duration period_;
  base::Clock* const clock_;
  ActiveRules active_rules_;
  std::string last_text_;
  absl::Status last_error_;  // of reading
  absl::Duration last_look_;
};

}  // namespace muster::scaling::rules
