#include "examples/smart_homes/totals_keeper.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status.h"

namespace muster::example {
namespace {

using stream::processor::CloseReason;
using stream::processor::PartitionContext;

std::string KeyOf(int partition) { return absl::StrCat("smart-homes/totals/", partition); }

// "NEXT READINGS ALARMS SUM".
absl::Status Parse(absl::string_view data, int64_t* next, Totals* totals) {
  const std::vector<absl::string_view> words = absl::StrSplit(data, ' ');
  if (words.size() != 4 || !absl::SimpleAtoi(words[0], next) ||
      !absl::SimpleAtoi(words[1], &totals->readings) ||
      !absl::SimpleAtoi(words[2], &totals->alarms) || !absl::SimpleAtoi(words[3], &totals->sum)) {
    return absl::DataLossError("the totals make no sense");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Totals> TotalsKeeper::Recorded(sync::OptimisticSyncStore* store, int partition) {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData read, store->Get(KeyOf(partition)));
  Totals totals;
  int64_t next = 0;
  if (read.version != sync::kAbsent) MUSTER_RETURN_IF_ERROR(Parse(read.data, &next, &totals));
  return totals;
}

TotalsKeeper::Partition* TotalsKeeper::Of(int partition) {
  base::MutexLock lock(&mu_);
  return &partitions_[partition];
}

// The state of an earlier time is void: another process may have gone on since.
void TotalsKeeper::OnPartitionInitializing(PartitionContext& partition) {
  std::printf("partition %d from offset %lld\n", partition.partition(),
              static_cast<long long>(partition.begins_at()));
  std::fflush(stdout);
  *Of(partition.partition()) = Partition();
}

absl::Status TotalsKeeper::OnEvent(PartitionContext& context, const stream::Event* event) {
  Partition* const partition = Of(context.partition());
  if (event == nullptr) {  // a quiet moment
    return partition->next > partition->saved ? Save(context, partition) : absl::OkStatus();
  }
  if (!partition->loaded) MUSTER_RETURN_IF_ERROR(Load(context.partition(), partition));
  if (event->offset < partition->next) return absl::OkStatus();  // it counts already
  MUSTER_ASSIGN_OR_RETURN(const Reading reading, Decode(event->key, event->body));
  partition->totals.Add(reading);
  partition->next = event->offset + 1;
  if (partition->next - partition->saved < kSaveEvery) return absl::OkStatus();
  // The event counts even if this fails: what is not saved, the next owner counts.
  return Save(context, partition);
}

absl::Status TotalsKeeper::Load(int number, Partition* partition) {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData read, store_->Get(KeyOf(number)));
  if (read.version != sync::kAbsent) {
    MUSTER_RETURN_IF_ERROR(Parse(read.data, &partition->next, &partition->totals));
  }
  partition->saved = partition->next;
  partition->version = read.version;
  partition->loaded = true;
  return absl::OkStatus();
}

absl::Status TotalsKeeper::Save(PartitionContext& context, Partition* partition) {
  const Totals& totals = partition->totals;
  const std::string data =
      absl::StrCat(partition->next, " ", totals.readings, " ", totals.alarms, " ", totals.sum);
  const std::string key = KeyOf(context.partition());
  // The record tells the outcome of the write.
  store_->TryWrite(key, data, partition->version).IgnoreError();
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData read, store_->Get(key));
  const std::string tried = std::exchange(partition->tried, data);
  if (read.data == data) {
    partition->version = read.version;
    partition->saved = partition->next;
    return context.UpdateCheckpoint({.offset = partition->next - 1});
  }
  if (read.version == partition->version || read.data == tried) {
    partition->version = read.version;
    return absl::UnavailableError(absl::StrCat(key, " was not written; it is tried again"));
  }
  return absl::FailedPreconditionError(absl::StrCat(key, ": another owner counts on"));
}

void TotalsKeeper::OnPartitionClosing(PartitionContext& context, CloseReason reason) {
  Partition* const partition = Of(context.partition());
  const bool changed = partition->loaded && partition->next > partition->saved;
  const bool may_save = reason == CloseReason::kHandedOver || reason == CloseReason::kShutdown;
  if (changed && may_save) Save(context, partition).IgnoreError();
  std::printf("partition %d %s\n", context.partition(),
              std::string(CloseReasonName(reason)).c_str());
  std::fflush(stdout);
}

void TotalsKeeper::OnError(const stream::processor::ProcessorError& error) {
  std::fprintf(stderr, "partition %d: %s: %s\n", error.partition,
               std::string(OperationName(error.operation)).c_str(),
               error.status.ToString().c_str());
}

}  // namespace muster::example
