#include "muster/wire/queue_names.h"

#include "absl/strings/str_cat.h"
#include "muster/base/safe_name.h"

namespace muster::wire {
namespace {

queue::QueueId Partition(absl::string_view account, absl::string_view job,
                         absl::string_view direction, int partition) {
  return {std::string(account), base::MakeSafeName(absl::StrCat(job, direction, partition))};
}

}  // namespace

queue::QueueId InputQueue(absl::string_view account, absl::string_view job, int partition) {
  return Partition(account, job, "-in-", partition);
}

queue::QueueId OutputQueue(absl::string_view account, absl::string_view job, int partition) {
  return Partition(account, job, "-out-", partition);
}

std::vector<queue::QueueId> InputQueues(absl::string_view account, absl::string_view job,
                                        int partitions) {
  std::vector<queue::QueueId> queues;
  queues.reserve(static_cast<size_t>(partitions));
  for (int i = 0; i < partitions; ++i) queues.push_back(InputQueue(account, job, i));
  return queues;
}

}  // namespace muster::wire
