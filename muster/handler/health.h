// HealthIssues: what keeps a job's handlers from working, as they themselves tell it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/base/mutex.h"

namespace muster::handler {

// One line in a table, and in each heartbeat; a stderr's last words fit.
inline constexpr size_t kMaxIssueBytes = 512;

// Told by all handlers of a job. Thread-safe.
class HealthIssues {
 public:
  // Empty: it finds nothing.
  using Probe = std::function<std::string()>;

  // The handlers cannot work, until one of them Works: `why` is made printable, and cut.
  void Note(absl::string_view why);
  // A handler has done what it is there for.
  void Works();
  // Whom to ask while nothing is noted. `probe` answers at once, from any thread.
  void SetProbe(Probe probe);

  // Empty: nothing is known to be wrong.
  std::string why() const;
  // What was told last is that one of them works.
  bool works() const;

 private:
  mutable base::Mutex mu_;
  std::string why_ ABSL_GUARDED_BY(mu_);
  bool works_ ABSL_GUARDED_BY(mu_) = false;
  Probe probe_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::handler
