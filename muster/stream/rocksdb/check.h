// SPDX-License-Identifier: Apache-2.0

// Checks every stored record of embedded event streams, and repairs them.
//
//   damaged or missing    repair
//   store record          rebuilt: the number of the next stream is above all that are in use
//   stream record         rebuilt if it is the only one: with as many partitions as have events,
//   and
//                         events stay for ever. Of several, each stream is called "recovered-N"
//   partition record      rebuilt from the events that are there; without any, offsets begin anew
//   event                 is lost: a record in its place says so, and readers pass over it
//   events in between     likewise, with one record for the whole gap
//
// A reader whose event is damaged gets DataLoss and stays, so that a repair may still bring the
// event back from a backup. After a repair, it goes on behind it.
//
// What cannot be found: events at the end that are gone without a trace. Offsets are then given
// again, and a group whose checkpoint lies beyond the end begins anew (partition_source.h).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/os/quarantine.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace muster::stream::rocksdb {

struct StreamCheckOptions {
  os::CheckOptions check;
  ::rocksdb::Env* env = nullptr;  // not owned; nullptr = the machine's
};

// NotFound: there is no store. FailedPrecondition: a process has it open, or a newer muster wrote
// it. DataLoss: the store cannot be read; the findings say so.
absl::StatusOr<os::CheckSummary> CheckStreams(const std::string& dir,
                                              const StreamCheckOptions& options);

}  // namespace muster::stream::rocksdb
