#include "cli/follower.h"

#include <utility>

#include "cli/table.h"
#include "muster/batch_remote/watch.h"

namespace muster::cli {

Follower::~Follower() {
  stop_.request_stop();
  std::thread thread;
  {
    base::MutexLock lock(&mu_);
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Follower::Begin(uint64_t batch) {
  base::MutexLock lock(&mu_);
  if (thread_.joinable()) return;
  thread_ = std::thread([this, batch] { Run(batch); });
}

void Follower::Run(uint64_t batch) {
  batch_remote::WatchOptions options;
  options.on_status = [this](const v1::BatchStatus& status) {
    const bool new_problem = [&] {
      base::MutexLock lock(&mu_);
      const bool is_new = !status.problem().empty() &&
                          (!latest_.has_value() || status.problem() != latest_->problem());
      latest_ = status;
      return is_new;
    }();
    if (new_problem) {
      *environment_->err << "\nmuster: batch " << status.batch()
                         << " waits: " << Printable(status.problem()) << std::endl;
    }
  };
  options.on_trouble = [this](const absl::Status& trouble) {
    *environment_->err << "\nmuster: " << Printable(trouble.message())
                       << "; trying again for a while" << std::endl;
  };
  absl::StatusOr<v1::BatchStatus> end = batch_remote::Watch(mesh_->initiator(), batch, options,
                                                            environment_->clock, stop_.get_token());
  if (!end.ok()) end = mesh_->Explained(end.status());
  base::MutexLock lock(&mu_);
  end_ = std::move(end);
  changed_.NotifyAll();
}

absl::StatusOr<v1::BatchStatus> Follower::AwaitEnd(absl::Duration timeout,
                                                   const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    base::MutexLock lock(&mu_);
    changed_.NotifyAll();
  });
  const absl::Duration deadline = environment_->clock->Monotonic() + timeout;
  base::MutexLock lock(&mu_);
  while (!end_.has_value()) {
    if (stop.stop_requested()) return absl::CancelledError("stopped waiting");
    if (environment_->clock->WaitUntil(&changed_, &mu_, deadline) && !end_.has_value()) {
      return absl::DeadlineExceededError("the batch is not complete yet");
    }
  }
  return *end_;
}

std::optional<RunProgress> Follower::progress() const {
  base::MutexLock lock(&mu_);
  if (!latest_.has_value()) return std::nullopt;
  const v1::BatchFlow& flow = latest_->progress();
  RunProgress progress;
  progress.read = static_cast<uint64_t>(flow.read());
  progress.queued = static_cast<uint64_t>(flow.queued());
  progress.processed = static_cast<uint64_t>(flow.processed());
  progress.committed = static_cast<uint64_t>(flow.committed());
  progress.split = flow.split();
  return progress;
}

}  // namespace muster::cli
