// SPDX-License-Identifier: Apache-2.0
#include "muster/item/queue_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/names.h"

namespace muster::item {
namespace {

constexpr char kInput[] = "-in";
constexpr char kOutput[] = "-out";

// Of a name that nothing was put behind.
std::optional<Direction> DirectionAtTheEnd(absl::string_view name) {
  const size_t size = name.size();
  while (!name.empty() && absl::ascii_isdigit(static_cast<unsigned char>(name.back()))) {
    name.remove_suffix(1);
  }
  if (name.size() == size || !absl::ConsumeSuffix(&name, "-")) return std::nullopt;
  if (absl::EndsWith(name, kInput)) return Direction::kInput;
  if (absl::EndsWith(name, kOutput)) return Direction::kOutput;
  return std::nullopt;
}

}  // namespace

std::string InputName(absl::string_view job) { return absl::StrCat(job, kInput); }

queue::QueueId InputQueue(absl::string_view account, absl::string_view job, int partition) {
  return {std::string(account), base::PartitionName(InputName(job), partition)};
}

queue::QueueId OutputQueue(absl::string_view account, absl::string_view job, int partition) {
  return {std::string(account), base::PartitionName(absl::StrCat(job, kOutput), partition)};
}

std::string OrderGroupPrefix(absl::string_view account, absl::string_view job) {
  return absl::StrCat("order/", InputQueue(account, job, 0).name, "/");
}

std::vector<queue::QueueId> InputQueues(absl::string_view account, absl::string_view job,
                                        int partitions) {
  std::vector<queue::QueueId> queues;
  queues.reserve(static_cast<size_t>(partitions));
  for (int i = 0; i < partitions; ++i) queues.push_back(InputQueue(account, job, i));
  return queues;
}

std::string LogicalName(absl::string_view queue_name) {
  absl::string_view name = queue_name;
  if (!DirectionAtTheEnd(name)) name = base::BeforeHash(name);
  if (!DirectionAtTheEnd(name)) return std::string(queue_name);
  return std::string(name.substr(0, name.rfind('-')));
}

std::string LogicalInput(absl::string_view job) {
  return LogicalName(InputQueue(kLocalAccount, job, 0).name);
}

std::optional<Direction> DirectionOf(absl::string_view queue_name) {
  if (const auto direction = DirectionAtTheEnd(queue_name)) return direction;
  return DirectionAtTheEnd(base::BeforeHash(queue_name));
}

}  // namespace muster::item
