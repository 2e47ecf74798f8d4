#include "muster/queue/rocksdb/counters_merge.h"

#include <string>

#include "muster/queue/rocksdb/codec.h"

namespace muster::queue::rocksdb {
namespace {

Counters DecodeOrZero(const ::rocksdb::Slice& record) {
  return DecodeCounters(absl::string_view(record.data(), record.size())).value_or(Counters());
}

class CountersMerge final : public ::rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const ::rocksdb::Slice&, const ::rocksdb::Slice* existing,
             const ::rocksdb::Slice& value, std::string* merged,
             ::rocksdb::Logger*) const override {
    Counters sum = existing == nullptr ? Counters() : DecodeOrZero(*existing);
    sum.Add(DecodeOrZero(value));
    *merged = EncodeCounters(sum);
    return true;
  }

  // Stored in RocksDB's own options file: never change it.
  const char* Name() const override { return "muster.queue.counters"; }
};

}  // namespace

std::shared_ptr<::rocksdb::MergeOperator> MakeCountersMerge() {
  return std::make_shared<CountersMerge>();
}

}  // namespace muster::queue::rocksdb
