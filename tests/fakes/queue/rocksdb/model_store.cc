#include "tests/fakes/queue/rocksdb/model_store.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::queue::rocksdb {

ModelStore::ModelStore() : dir_(root_ / "0") {
  env_.sync_for_real = false;
  Open(false);
}

ModelStore::~ModelStore() = default;

void ModelStore::Reopen(Ending ending, int kept_percent, bool holders_in_process) {
  const std::string next = root_ / absl::StrCat(++reopens_);
  if (ending == Ending::kKill) std::filesystem::copy(dir_, next);
  if (ending == Ending::kPowerCut) env_.CopyAsAfterPowerCut(dir_, next, kept_percent);
  // What the old store still writes goes where nobody looks any more.
  store_.reset();
  if (ending != Ending::kOrderly) dir_ = next;
  env_.fail_appends = env_.fail_syncs = false;
  Open(holders_in_process);
}

void ModelStore::Open(bool holders_in_process) {
  Options options;
  options.clock = &clock_;
  options.env = &env_;
  options.holders_in_process = holders_in_process;
  auto store = RocksDbQueueStore::Open(dir_, options);
  if (!store.ok()) RC_FAIL(absl::StrCat("the store does not open: ", store.status().ToString()));
  store_ = *std::move(store);
}

}  // namespace muster::queue::rocksdb
