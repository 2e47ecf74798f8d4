// SPDX-License-Identifier: Apache-2.0

// RawStore: RocksDB as a program would use it without a queue. A sequence number is the key, the
// body is the value, and each call is one synced write.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/queue_bench/side.h"

namespace rocksdb {
class DB;
}  // namespace rocksdb

namespace muster::queue_bench {

class RawStore final : public Side {
 public:
  // Makes `directory`, with RocksDB's own defaults but no compression.
  explicit RawStore(const std::string& directory);
  ~RawStore() override;

  void Put(int caller, std::vector<std::string> bodies) override;
  void Take(int count) override;

 private:
  std::unique_ptr<::rocksdb::DB> db_;
  std::atomic<uint64_t> next_{0};
  uint64_t taken_ = 0;
};

}  // namespace muster::queue_bench
