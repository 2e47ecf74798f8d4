// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/queue/rocksdb/model_command.h"

#include <tuple>
#include <utility>

namespace muster::queue::rocksdb {

namespace {

// Shrinks towards the first, unlike RapidCheck's own elementOf.
template <typename T>
rc::Gen<T> OneOf(std::vector<T> values) {
  return rc::gen::map(rc::gen::inRange<size_t>(0, values.size()),
                      [values](size_t i) { return values[i]; });
}

// How often each verb comes.
rc::Gen<Verb> AnyVerb() {
  std::vector<Verb> verbs;
  for (const auto& [verb, weight] : std::vector<std::pair<Verb, int>>{{Verb::kPass, 6},
                                                                      {Verb::kPut, 12},
                                                                      {Verb::kReceive, 10},
                                                                      {Verb::kPeek, 2},
                                                                      {Verb::kStats, 2},
                                                                      {Verb::kDelete, 4},
                                                                      {Verb::kBeginAttempt, 6},
                                                                      {Verb::kUpdate, 8},
                                                                      {Verb::kDeadLetter, 4},
                                                                      {Verb::kListPoison, 2},
                                                                      {Verb::kRedrive, 3},
                                                                      {Verb::kPurgePoison, 1},
                                                                      {Verb::kClear, 1},
                                                                      {Verb::kSetMetadata, 1},
                                                                      {Verb::kCreate, 4},
                                                                      {Verb::kDestroy, 1}}) {
    verbs.insert(verbs.end(), weight, verb);
  }
  return OneOf(verbs);
}

// Few times, so that instants often coincide, and the bounds of the engine are among them.
rc::Gen<absl::Duration> AnyWait() {
  return OneOf<absl::Duration>({absl::Seconds(1), absl::ZeroDuration(), absl::Seconds(5),
                                absl::Seconds(30), absl::Minutes(10), absl::Hours(1)});
}

rc::Gen<absl::Duration> AnyTtl() {
  return OneOf<absl::Duration>({absl::InfiniteDuration(), absl::InfiniteDuration(),
                                absl::Hours(24 * 7), absl::Minutes(10), absl::Seconds(5),
                                absl::Seconds(1)});
}

rc::Gen<Command> AnyVerbCommand() {
  return rc::gen::build<Command>(rc::gen::set(&Command::verb, AnyVerb()),
                                 rc::gen::set(&Command::count, rc::gen::inRange(1, 4)),
                                 rc::gen::set(&Command::which, rc::gen::inRange(0, 8)),
                                 rc::gen::set(&Command::wait, AnyWait()),
                                 rc::gen::set(&Command::ttl, AnyTtl()),
                                 rc::gen::set(&Command::dedup, OneOf<int>({0, 0, 1, 2})),
                                 rc::gen::set(&Command::attempt_ended));
}

// The store ends and is opened again, or it must be because the disk failed a command.
rc::Gen<Command> AnyCrash() {
  return rc::gen::mapcat(AnyVerbCommand(), [](Command command) {
    return rc::gen::map(
        rc::gen::tuple(OneOf<Disk>({Disk::kWorks, Disk::kRefusesWrites, Disk::kRefusesSyncs}),
                       OneOf<Ending>({Ending::kOrderly, Ending::kKill, Ending::kPowerCut}),
                       OneOf<int>({0, 0, 50, 80, 100}), rc::gen::arbitrary<bool>()),
        [command](const std::tuple<Disk, Ending, int, bool>& crash) {
          Command crashing = command;
          std::tie(crashing.disk, crashing.ending, crashing.kept_percent,
                   crashing.holders_in_process) = crash;
          if (crashing.disk == Disk::kWorks) crashing.verb = Verb::kReopen;
          return crashing;
        });
  });
}

const char* NameOf(Verb verb) {
  constexpr const char* kNames[] = {
      "Pass",         "Put",         "Receive",    "Peek",       "Stats",   "Delete",
      "BeginAttempt", "Update",      "DeadLetter", "ListPoison", "Redrive", "PurgePoison",
      "Clear",        "SetMetadata", "Create",     "Destroy",    "Reopen"};
  return kNames[static_cast<int>(verb)];
}

}  // namespace

rc::Gen<std::vector<Command>> AnyCommands(bool with_crashes) {
  if (!with_crashes) return rc::gen::container<std::vector<Command>>(AnyVerbCommand());
  return rc::gen::container<std::vector<Command>>(
      rc::gen::weightedOneOf<Command>({{15, AnyVerbCommand()}, {1, AnyCrash()}}));
}

std::ostream& operator<<(std::ostream& out, const Command& command) {
  constexpr const char* kDisks[] = {"", " with refused writes", " with refused syncs"};
  constexpr const char* kEndings[] = {"an orderly stop", "a kill", "a power cut that kept "};
  out << "\n  " << NameOf(command.verb) << kDisks[static_cast<int>(command.disk)];
  if (command.verb != Verb::kReopen) {
    out << " count=" << command.count << " which=" << command.which << " wait=" << command.wait
        << " ttl=" << command.ttl << " dedup=" << command.dedup
        << (command.attempt_ended ? " attempt_ended" : "");
  }
  if (command.verb == Verb::kReopen || command.disk != Disk::kWorks) {
    out << " and open after " << kEndings[static_cast<int>(command.ending)];
    if (command.ending == Ending::kPowerCut) out << command.kept_percent << " % of the log's end";
    if (command.holders_in_process) out << ", holders in process";
  }
  return out;
}

namespace {

constexpr char kUnknown[] = "(unknown)";

}  // namespace

void Names::Bind(const std::string& id, const std::string& name) {
  if (names_.contains(id) || ids_.contains(name)) return;
  names_[id] = name;
  ids_[name] = id;
}

std::string Names::OfEngine(const std::string& id) const {
  const auto found = names_.find(id);
  return found == names_.end() ? kUnknown : found->second;
}

std::string Names::OfModel(const std::string& name) const {
  return ids_.contains(name) ? name : kUnknown;
}

std::string Show::Time(absl::Time time) const {
  return time == absl::InfiniteFuture() ? "never" : absl::FormatDuration(time - start_);
}

std::string Show::Name(const std::string& id) const {
  return whose_ == kEngine ? names_->OfEngine(id) : names_->OfModel(id);
}

std::string Show::operator()(const absl::Status& status) const {
  return status.ok() ? "ok" : absl::StatusCodeToString(status.code());
}

std::string Show::operator()(const queue::Metadata& metadata) const {
  return absl::StrCat("ok ", absl::StrJoin(metadata, ",", absl::PairFormatter("=")));
}

std::string Show::operator()(const queue::PutResult& result) const {
  if (result.duplicate) return absl::StrCat("ok duplicate of ", Name(result.message_id));
  return absl::StrCat("ok ", Name(result.message_id), " put at ", Time(result.insertion_time),
                      " visible at ", Time(result.next_visible_time), " until ",
                      Time(result.expiration_time));
}

std::string Show::operator()(const queue::Message& message) const {
  return absl::StrCat("ok ", Name(message.message_id), " '", message.body, "' put at ",
                      Time(message.insertion_time), " visible at ", Time(message.next_visible_time),
                      " until ", Time(message.expiration_time), " received ", message.dequeue_count,
                      " attempts ", message.attempts, message.interrupted ? " interrupted" : "");
}

std::string Show::operator()(const queue::UpdateResult& result) const {
  return absl::StrCat("ok visible at ", Time(result.next_visible_time));
}

std::string Show::operator()(const queue::PoisonMessage& message) const {
  return absl::StrCat("ok ", Name(message.message_id), " '", message.body, "' put at ",
                      Time(message.insertion_time), " for ", message.cause.reason, " by ",
                      message.cause.holder, " after ", message.cause.attempts, " at ",
                      Time(message.cause.time));
}

std::string Show::operator()(const queue::QueueStats& stats) const {
  return absl::StrCat("ok ready ", stats.ready, " in flight ", stats.in_flight, " delayed ",
                      stats.delayed, " poison ", stats.poison, " oldest ",
                      absl::FormatDuration(stats.oldest_age), " in ", stats.total_in, " out ",
                      stats.total_out, " expired ", stats.total_expired, " stale ",
                      stats.stale_receipts);
}

}  // namespace muster::queue::rocksdb
