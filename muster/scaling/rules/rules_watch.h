// RulesWatch: looks at a rules file every now and then, and offers what has changed to its
// active_rules.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/scaling/rules/rules_keeper.h"

namespace muster::scaling::rules {

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
