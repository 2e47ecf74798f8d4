// ActiveRules: the rules in force. New ones replace them only when they are sound.
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
  // `file_name` stands in mistakes; `text` is what `rules` were read from.
  ActiveRules(std::string file_name, Rules rules, std::string text = "");

  // What a rules file says now. OK: these rules are in force. Else, as ParseRules: those before
  // them still are, and the refusal is counted.
  absl::Status Offer(absl::string_view text) ABSL_LOCKS_EXCLUDED(mu_);
  // The file could not be read: a refusal, too.
  void Refuse(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

  struct State {
    std::shared_ptr<const Rules> rules;  // shared with who decides by them meanwhile
    std::string text;                    // of them, as it was offered
    int64_t revision = 0;                // grows with each change of the rules
    int64_t refusals = 0;                // since the start
    absl::Status refusal;                // of what was offered last; OK: that is in force
  };
  State state() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::string file_name_;
  mutable base::Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_);
};

// RulesWatch: looks at a rules file every now and then, and offers what has changed to its
// active_rules.

// It compares content, not times of change: editors and mounted config maps replace files, and may
// carry old times along. Not thread-safe; its active_rules is.
class RulesWatch {
 public:
  // As LoadRulesFile: without sound rules there is nothing to start with. `clock` is not owned.
  static absl::StatusOr<std::unique_ptr<RulesWatch>> Open(std::string path, absl::Duration period,
                                                          base::Clock* clock);

  enum class Seen { kNothingNew, kNewRules, kRefused };
  // Reads the file, at most once in a period. A mistake is refused once, not again and again; so is
  // a file that cannot be read. A file that is put back as it was before the mistake is new rules.
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
