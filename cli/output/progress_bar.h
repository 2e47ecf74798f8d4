// SPDX-License-Identifier: Apache-2.0

// ProgressBar: shows on stderr how far a run is: one line that redraws itself on a terminal, plain
// lines elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "cli/output/environment.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::cli {

// Transactions that have passed each stage of a run.
struct RunProgress {
  uint64_t read = 0;
  uint64_t queued = 0;
  uint64_t processed = 0;
  uint64_t committed = 0;
  // Of these.
  uint64_t rejected = 0;
  uint64_t dead_lettered = 0;
  double split =
      0;  // share of the input that is read, 0..1: tells how many transactions there will be
};

struct ProgressBarOptions {
  bool terminal = false;
  // Between two redraws, or two lines; a line that repeats the last one is left out.
  absl::Duration interval = absl::Milliseconds(100);

  // For the stderr of a command.
  static ProgressBarOptions For(const Environment& environment) {
    const bool terminal = environment.err_is_terminal;
    return {terminal, terminal ? absl::Milliseconds(100) : absl::Seconds(2)};
  }
};

// Thread-safe.
class ProgressBar {
 public:
  // nullopt: nothing is known yet, and nothing is shown.
  using Sample = std::function<std::optional<RunProgress>()>;

  // `sample` is called on the bar's own thread until Finish. `out` and `clock` are not owned.
  ProgressBar(ProgressBarOptions options, Sample sample, std::ostream* out, base::Clock* clock);
  // Finish()es.
  ~ProgressBar();

  // Shows the last state and ends the line. Safe to call twice.
  void Finish();

 private:
  void Run();
  void DrawWhatIsKnown();
  void Draw(const RunProgress& progress, absl::Duration lapse);

  const ProgressBarOptions options_;
  const Sample sample_;
  std::ostream* const out_;   // not owned
  base::Clock* const clock_;  // not owned
  const absl::Duration start_;
  // The committed transactions at the first sample: an earlier run committed them, so they do not
  // count for the speed of this one.
  std::optional<uint64_t> committed_before_;
  std::string last_line_;  // only without a terminal

  base::Mutex mu_;
  base::CondVar wake_;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses all of the above
};

// "████░░  62% · read 541,909 · queued … · processed … · committed … · 1.2 M/s · 3 s left"; also
// how many are rejected and dead-lettered, once any are.
std::string ProgressLine(const RunProgress& progress, double transactions_per_second,
                         bool with_bar);

}  // namespace muster::cli
