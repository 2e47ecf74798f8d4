// ActiveRules: the rules in force. New ones replace them only when they are sound.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
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

}  // namespace muster::scaling::rules
