// SPDX-License-Identifier: Apache-2.0

// DefinitionCache: the definitions of jobs that a process has read or applied lately, parsed, and
// by which of them each job was defined then.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/base/mutex.h"
#include "muster/job/job.h"

namespace muster::job {

// A process needs few jobs again and again, and a text may be long.
inline constexpr size_t kMaxRemembered = 32;

// Thread-safe.
class DefinitionCache {
 public:
  // The definition whose text has this hash; nullopt: it is not here, or no more. What is under a
  // hash never changes.
  std::optional<JobDefinition> Find(const std::string& text_hash) const ABSL_LOCKS_EXCLUDED(mu_);
  // With more than kMaxRemembered, all others are forgotten.
  void Add(const std::string& text_hash, const JobDefinition& job) ABSL_LOCKS_EXCLUDED(mu_);

  // The job of this name, as NoteCurrent was told last; nullopt: it was not, or too long ago.
  std::optional<JobDefinition> FindCurrent(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mu_);
  void NoteCurrent(const std::string& name, const std::string& text_hash) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::optional<JobDefinition> FindLocked(const std::string& text_hash) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable base::Mutex mu_;
  std::map<std::string, JobDefinition> definitions_ ABSL_GUARDED_BY(mu_);  // by their hash
  // Hashes by job. Each text is in definitions_, or was dropped from there.
  std::map<std::string, std::string, std::less<>> current_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::job
