// SPDX-License-Identifier: Apache-2.0

// The rival's pipeline: one thread reads and publishes, workers on threads of their own fetch,
// parse, add up and publish what they found, and one aggregator adds that into SQLite.
//
//   file ─► stream "items" ─► workers ─► stream "results" ─► aggregator ─► SQLite
//
// Nothing is acknowledged before what was made of it is stored, so that a crash loses nothing and
// what comes twice counts once.
#pragma once

#include <cstdint>
#include <string>

namespace rival {

struct PipelineOptions {
  std::string server;  // nats://HOST:PORT
  std::string input;   // CSV, with a header where lines are billed
  std::string report;  // the database, which must not be there yet
  int lines = 500;     // of an item
  int workers = 2;
  bool bill = true;  // false: workers count the lines and do nothing with them
};

struct PipelineFigures {
  int64_t items = 0;
  int64_t transactions = 0;
  int64_t rejected = 0;
  double seconds = 0;  // from the first read to the last commit
  std::string groups;  // the report, as bench::GroupsJson
};

PipelineFigures RunPipeline(const PipelineOptions& options);

}  // namespace rival
