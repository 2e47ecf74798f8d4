// SPDX-License-Identifier: Apache-2.0
#include "cli/output/progress_bar.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/output/format.h"

namespace muster::cli {
namespace {

constexpr int kBarCells = 24;

// How many transactions the input holds, as far as one can tell.
double ExpectedTransactions(const RunProgress& progress) {
  if (progress.split <= 0) return 0;
  return static_cast<double>(progress.read) / std::min(progress.split, 1.0);
}

std::string Rate(double per_second) {
  if (per_second >= 1e6) return absl::StrFormat("%.2f M/s", per_second / 1e6);
  if (per_second >= 1e3) return absl::StrFormat("%.1f k/s", per_second / 1e3);
  return absl::StrFormat("%.0f/s", per_second);
}

std::string TimeLeft(double seconds) {
  if (seconds < 120) return absl::StrFormat("%.0f s left", std::ceil(seconds));
  if (seconds < 7200) return absl::StrFormat("%.0f min left", std::ceil(seconds / 60));
  return absl::StrFormat("%.1f h left", seconds / 3600);
}

std::optional<uint64_t> Committed(const std::optional<RunProgress>& progress) {
  if (!progress.has_value()) return std::nullopt;
  return progress->committed;
}

std::string Bar(double share) {
  std::string bar;
  const int full = static_cast<int>(share * kBarCells);
  for (int i = 0; i < kBarCells; ++i) bar += i < full ? "█" : "░";
  return bar;
}

}  // namespace

std::string ProgressLine(const RunProgress& progress, double transactions_per_second,
                         bool with_bar) {
  const double expected = ExpectedTransactions(progress);
  const double share =
      expected > 0 ? std::min(1.0, static_cast<double>(progress.committed) / expected) : 0;
  std::string line = with_bar ? Bar(share) : "";
  absl::StrAppendFormat(&line, "%s%3.0f%% · read %s · queued %s · processed %s · committed %s",
                        with_bar ? " " : "", std::floor(share * 100), Grouped(progress.read),
                        Grouped(progress.queued), Grouped(progress.processed),
                        Grouped(progress.committed));
  if (progress.rejected > 0) absl::StrAppend(&line, " · rejected ", Grouped(progress.rejected));
  if (progress.dead_lettered > 0) {
    absl::StrAppend(&line, " · dead-lettered ", Grouped(progress.dead_lettered));
  }
  if (transactions_per_second > 0) {
    absl::StrAppend(&line, " · ", Rate(transactions_per_second));
    const double left = expected - static_cast<double>(progress.committed);
    if (left >= 1) absl::StrAppend(&line, " · ", TimeLeft(left / transactions_per_second));
  }
  return line;
}

ProgressBar::ProgressBar(ProgressBarOptions options, Sample sample, std::ostream* out,
                         base::Clock* clock)
    : options_(options),
      sample_(std::move(sample)),
      out_(out),
      clock_(clock),
      start_(clock->Monotonic()),
      committed_before_(Committed(sample_())),
      thread_([this] { Run(); }) {}

ProgressBar::~ProgressBar() { Finish(); }

void ProgressBar::Run() {
  absl::Duration next = start_ + options_.interval;
  base::MutexLock lock(&mu_);
  while (!finished_) {
    if (!clock_->WaitUntil(&wake_, &mu_, next)) continue;
    next += options_.interval;
    mu_.Unlock();
    DrawWhatIsKnown();
    mu_.Lock();
  }
}

void ProgressBar::DrawWhatIsKnown() {
  const std::optional<RunProgress> progress = sample_();
  if (!progress.has_value()) return;
  if (!committed_before_.has_value()) committed_before_ = progress->committed;
  Draw(*progress, clock_->Monotonic() - start_);
}

void ProgressBar::Draw(const RunProgress& progress, absl::Duration lapse) {
  const double seconds = absl::ToDoubleSeconds(lapse);
  const uint64_t done = progress.committed - std::min(progress.committed, *committed_before_);
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const std::string line = ProgressLine(progress, rate, options_.terminal);
  if (!options_.terminal && std::exchange(last_line_, line) == line) return;
  // On a terminal: back to the line's start, and clear what the last drawing leaves over.
  *out_ << (options_.terminal ? absl::StrCat("\r\x1b[K", line) : absl::StrCat(line, "\n"))
        << std::flush;
}

void ProgressBar::Finish() {
  {
    base::MutexLock lock(&mu_);
    if (finished_) return;
    finished_ = true;
    wake_.NotifyAll();
  }
  thread_.join();
  DrawWhatIsKnown();
  if (options_.terminal && committed_before_.has_value()) *out_ << std::endl;
}

}  // namespace muster::cli
