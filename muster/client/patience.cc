#include "muster/client/patience.h"

#include <algorithm>

#include "muster/base/sleep.h"
#include "muster/rpc/status.h"

namespace muster::client {
namespace {

constexpr absl::Duration kMinWait = absl::Milliseconds(100);
constexpr absl::Duration kMaxWait = absl::Seconds(2);
constexpr absl::Duration kTellAfter = absl::Seconds(1);

// A server that ends cancels what still runs there.
bool MayPass(const absl::Status& trouble) {
  return absl::IsUnavailable(trouble) ||
         (absl::IsCancelled(trouble) && !rpc::Reason(trouble).has_value());
}

}  // namespace

absl::Status RetryBackoff::WaitAfter(const absl::Status& trouble, const std::stop_token& stop) {
  if (stop.stop_requested()) return absl::CancelledError("stopped");
  const absl::Duration now = clock_->Monotonic();
  if (failures_ == 0) began_ = now;
  if (!MayPass(trouble) || now - began_ > patience_) return trouble;
  if (on_trouble_ && !told_ && now - began_ >= kTellAfter) {
    told_ = true;
    on_trouble_(trouble);
  }
  const absl::Duration wait = std::min(kMinWait * (1 << std::min(failures_, 10)), kMaxWait);
  ++failures_;
  base::SleepUnlessStopped(clock_, wait, stop);
  return stop.stop_requested() ? absl::CancelledError("stopped") : absl::OkStatus();
}

}  // namespace muster::client
