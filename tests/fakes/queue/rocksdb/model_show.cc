#include "tests/fakes/queue/rocksdb/model_show.h"

namespace muster::queue::rocksdb {
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
