// SPDX-License-Identifier: Apache-2.0

// ReportSpool: keeps the pages of a report between the report's database and a slow reader.
//
// A read transaction of SQLite keeps the log from being cut, and a client that reads over the
// network may pause for hours. So a report is read as fast as the disk allows, in one transaction,
// and sent when the transaction has ended: all of its rows are still of one moment.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "muster/os/file_descriptor.h"
#include "muster/v1/report_service.pb.h"

namespace muster::controller {

// Not thread-safe.
class ReportSpool {
 public:
  // What is more than `memory_bytes` goes to a file in `folder`, which has no name and so is gone
  // when the process ends. An empty folder: the system's for temporary files.
  explicit ReportSpool(std::string folder, size_t memory_bytes = kMemoryBytes);

  // ResourceExhausted: the disk is full. Unavailable: it failed.
  absl::Status Add(const v1::GetReportResponse& page);

  // Gives each page to `send`, in their order, until it answers false: then Cancelled.
  absl::Status Send(const std::function<bool(const v1::GetReportResponse&)>& send);

  // Most reports are smaller than this.
  static constexpr size_t kMemoryBytes = size_t{2} << 20;

 private:
  // Moves what is in memory to the end of the file.
  absl::Status Flush();

  const std::string folder_;
  const size_t memory_bytes_;
  std::string memory_;       // pages, each behind its length
  os::FileDescriptor file_;  // what came before the pages in memory; none: nothing did
  size_t file_bytes_ = 0;
};

}  // namespace muster::controller
