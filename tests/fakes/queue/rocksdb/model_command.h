// SPDX-License-Identifier: Apache-2.0

// The commands of a property test: what the users of a queue, and the machine below it, may do.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "muster/queue/queue_store.h"
#include "rapidcheck.h"

namespace muster::queue::rocksdb {

// Ordered from harmless to rare: a counterexample shrinks towards the first.
enum class Verb {
  kPass,  // time passes
  kPut,
  kReceive,
  kPeek,
  kStats,
  kDelete,
  kBeginAttempt,
  kUpdate,
  kDeadLetter,
  kListPoison,
  kRedrive,
  kPurgePoison,
  kClear,
  kSetMetadata,
  kCreate,
  kDestroy,
  kReopen,
};

// How a store ends before it is opened again.
enum class Ending { kOrderly, kKill, kPowerCut };

enum class Disk { kWorks, kRefusesWrites, kRefusesSyncs };

// Each verb reads only the fields that it needs.
struct Command {
  Verb verb = Verb::kPass;
  int count = 1;                           // of messages, or of receipts in one call
  int which = 0;                           // the first receipt: so many before the newest
  absl::Duration wait = absl::Seconds(1);  // that passes; the visibility; the delay of a put
  absl::Duration ttl = absl::InfiniteDuration();
  int dedup = 0;               // of a put: 0 is none
  bool attempt_ended = false;  // of an update; its other two change with `which`
  // If the disk fails, the store is opened again after the verb.
  Disk disk = Disk::kWorks;
  Ending ending = Ending::kOrderly;
  int kept_percent = 0;  // of what was not synced when the power went
  bool holders_in_process = false;

  friend bool operator==(const Command& a, const Command& b) = default;
};

std::ostream& operator<<(std::ostream& out, const Command& command);

rc::Gen<std::vector<Command>> AnyCommands(bool with_crashes);

// Answers as text, so that those of an engine and of a model can be compared and read.

// The message ids of the engine, and the names of these messages in the model: the bodies with
// which they were put.
class Names {
 public:
  // Does nothing when either name is known.
  void Bind(const std::string& id, const std::string& name);

  // Returns the name for an id of the engine or of a model. The id of a put with a lost answer is
  // unknown until its message is seen.
  std::string OfEngine(const std::string& id) const;
  std::string OfModel(const std::string& name) const;
  // Of a name that is bound.
  std::string IdOf(const std::string& name) const { return ids_.at(name); }

 private:
  std::map<std::string, std::string> names_;  // by id
  std::map<std::string, std::string> ids_;    // by name
};

// Omits receipts; gives times relative to `start`. A success begins with "ok".
class Show {
 public:
  enum Whose { kEngine, kModel };
  // `names` is not owned.
  Show(const Names* names, absl::Time start, Whose whose)
      : names_(names), start_(start), whose_(whose) {}

  std::string operator()(const absl::Status& status) const;
  std::string operator()(int64_t count) const { return absl::StrCat("ok ", count); }
  std::string operator()(const queue::Metadata& metadata) const;
  std::string operator()(const queue::PutResult& result) const;
  std::string operator()(const queue::Message& message) const;
  std::string operator()(const queue::UpdateResult& result) const;
  std::string operator()(const queue::PoisonMessage& message) const;
  std::string operator()(const queue::QueueStats& stats) const;
  template <typename T>
  std::string operator()(const absl::StatusOr<T>& value) const {
    return value.ok() ? (*this)(*value) : (*this)(value.status());
  }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    const auto show = [this](std::string* out, const T& value) { out->append((*this)(value)); };
    return absl::StrCat("[", absl::StrJoin(values, "; ", show), "]");
  }

 private:
  std::string Name(const std::string& id) const;
  std::string Time(absl::Time time) const;

  const Names* const names_;  // not owned
  const absl::Time start_;
  const Whose whose_;
};

}  // namespace muster::queue::rocksdb
