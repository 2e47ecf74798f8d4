// SPDX-License-Identifier: Apache-2.0
#include "muster/job/definition_cache.h"

namespace muster::job {

std::optional<JobDefinition> DefinitionCache::Find(const std::string& text_hash) const {
  base::MutexLock lock(&mu_);
  return FindLocked(text_hash);
}

std::optional<JobDefinition> DefinitionCache::FindLocked(const std::string& text_hash) const {
  const auto found = definitions_.find(text_hash);
  if (found == definitions_.end()) return std::nullopt;
  return found->second;
}

void DefinitionCache::Add(const std::string& text_hash, const JobDefinition& job) {
  base::MutexLock lock(&mu_);
  if (definitions_.size() >= kMaxRemembered) definitions_.clear();
  definitions_.emplace(text_hash, job);
}

std::optional<JobDefinition> DefinitionCache::FindCurrent(absl::string_view name) const {
  base::MutexLock lock(&mu_);
  const auto current = current_.find(name);
  if (current == current_.end()) return std::nullopt;
  return FindLocked(current->second);
}

void DefinitionCache::NoteCurrent(const std::string& name, const std::string& text_hash) {
  base::MutexLock lock(&mu_);
  if (current_.size() >= kMaxRemembered && !current_.contains(name)) current_.clear();
  current_[name] = text_hash;
}

}  // namespace muster::job
