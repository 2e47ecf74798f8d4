#include "muster/listener/work_meter.h"

namespace muster::listener {

void WorkMeter::Served(absl::Duration time) {
  base::MutexLock lock(&mu_);
  times_.service.Add(time);
}

WorkTimes WorkMeter::Read() const {
  base::MutexLock lock(&mu_);
  WorkTimes times = times_;
  AddLapseLocked(&times);
  return times;
}

void WorkMeter::Change(int tasks, int busy_tasks) {
  base::MutexLock lock(&mu_);
  changed_at_ = AddLapseLocked(&times_);
  times_.tasks += tasks;
  times_.busy_tasks += busy_tasks;
}

absl::Duration WorkMeter::AddLapseLocked(WorkTimes* times) const {
  const absl::Duration now = clock_->Monotonic();
  times->running += times->tasks * (now - changed_at_);
  times->busy += times->busy_tasks * (now - changed_at_);
  return now;
}

}  // namespace muster::listener
