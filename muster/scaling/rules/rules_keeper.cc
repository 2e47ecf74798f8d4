#include "muster/scaling/rules/rules_keeper.h"

#include <utility>

#include "muster/scaling/rules/rules_file.h"

namespace muster::scaling::rules {

ActiveRules::ActiveRules(std::string file_name, Rules rules, std::string text)
    : file_name_(std::move(file_name)) {
  state_.rules = std::make_shared<const Rules>(std::move(rules));
  state_.text = std::move(text);
}

absl::Status ActiveRules::Offer(absl::string_view text) {
  absl::StatusOr<Rules> rules = ParseRules(text, file_name_);
  if (!rules.ok()) {
    Refuse(rules.status());
    return rules.status();
  }
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

}  // namespace muster::scaling::rules
