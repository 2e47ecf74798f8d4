// SPDX-License-Identifier: Apache-2.0

// JobDefinition: what a job file says, checked and with its defaults filled in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/output_record.h"
#include "muster/handler/work_item.h"
#include "muster/input/format.h"
#include "muster/ledger/retention.h"

namespace muster::job {

// How an input is cut into work items.
struct ItemLimits {
  int transactions = 500;
  size_t max_bytes = size_t{256} << 10;
};

// A handler that is linked into the program, by the name it was registered with.
struct LinkedHandlerSpec {
  std::string name;
  // For one work item. Nothing can end code of the process itself: the item is told its deadline,
  // and warnings name it. Only in a process of its own it is ended then. Unset: it has none.
  std::optional<absl::Duration> deadline = std::nullopt;
  // Where in the job file it is named; 0: in none.
  int line = 0;
  int column = 0;
};

// A program that is started once per worker. Its working directory is JobDefinition::folder, so
// that relative paths in argv mean files beside the job file; argv[0] without a slash is looked up
// in PATH.
struct CommandHandlerSpec {
  std::vector<std::string> argv;
  absl::Duration deadline = absl::Seconds(60);  // for one work item
  std::string version = "1";  // to be changed whenever the program's results may change
  // Set in the program's environment on top of the usual variables; in the order of the file.
  std::vector<std::pair<std::string, std::string>> env;
};

// A server that speaks muster.v1.HandlerService.
struct GrpcHandlerSpec {
  std::string address;                          // HOST:PORT
  absl::Duration deadline = absl::Seconds(60);  // for one work item
  std::string version = "1";                    // that the server must say it has
  // What the handler gets as its parameters; in the order of the file.
  std::vector<std::pair<std::string, std::string>> env;
};

using HandlerSpec = std::variant<LinkedHandlerSpec, CommandHandlerSpec, GrpcHandlerSpec>;

struct QueueSpec {
  int partitions = 1;
  // How long a silent worker keeps an item; unset: the program's or the mesh's default.
  std::optional<absl::Duration> visibility;
  int max_attempts = 5;
  // A new batch is refused while the waiting work would take longer than this; unset: no limit.
  std::optional<absl::Duration> max_drain;
  // The messages of items carry their content, so that workers need no initiator; false: they refer
  // to it, which costs less.
  bool content_inline = false;
};

// How many transactions of a batch may be rejected before the batch counts as failed.
struct Tolerance {
  int64_t rejected = 0;
  // When set, it rules instead of `rejected`: parts per million of the batch's transactions.
  std::optional<int64_t> rejected_ppm;

  bool Allows(int64_t rejections, int64_t transactions) const;
};

// What becomes of the later items of a key, in a job with order_by, once one of them is a dead
// letter.
enum class OnPoison {
  kSkip,  // they go on
  kHold,  // they wait until an operator releases the key, or redrives the dead letter
};

struct JobDefinition {
  std::string name;
  input::InputFormat input;
  ItemLimits item;
  // The column, by its place in input.columns, whose equal fields are worked on in order: an item
  // holds records of one key, and begins when the one before it of the same key is settled. Unset:
  // in any order.
  std::optional<int> order_by;
  OnPoison on_poison = OnPoison::kSkip;  // kHold only with order_by
  HandlerSpec handler;
  std::vector<handler::GroupSchema> groups;
  std::vector<base::OutputColumn> outputs;  // of the records that the handler may return
  QueueSpec queue;
  Tolerance tolerate;
  std::optional<absl::Duration> sla_max;  // the promised latency of a batch
  ledger::Retention retention;            // of the job's batches
  // An upload of which nothing arrives for so long is given up. A client whose machine was down
  // over night goes on in the morning.
  absl::Duration upload_expires = absl::Hours(24);

  std::string text;    // of the job file, as it stands
  std::string folder;  // absolute, that the job file lies in; "" when it came from no file
  // Fingerprint of all of the above that decides results: not of text and folder, nor of
  // on_poison, the queue's patience and content, tolerance, promised latency, retention, the
  // expiry of uploads and the deadline of a linked handler. 32 hex digits; comments, spacing, key
  // order and spelled-out defaults do not change it.
  std::string revision;

  // What the handler may know.
  handler::JobSchema schema() const;
};

// The canonical form that the revision is the fingerprint of, one "key=value" a line.
std::string CanonicalText(const JobDefinition& job);

}  // namespace muster::job
