// SPDX-License-Identifier: Apache-2.0
#include "muster/kubernetes/object_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/kubernetes/limits.h"
#include "muster/kubernetes/workload.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes {
namespace {

using nlohmann::json;

constexpr int kGone = 410;

absl::Status ErrorEvent(const json& object) {
  const std::string message =
      absl::StrCat("the watch ended: ", TextAt(object, {"message"}).substr(0, kMaxServerWords));
  return IntegerAt(object, {"code"}) == kGone ? absl::OutOfRangeError(message)
                                              : absl::UnavailableError(message);
}

}  // namespace

ObjectWatch::ObjectWatch(Client* client, Address address, std::string selector,
                         WatchListener* listener, base::Clock* clock)
    : client_(client),
      address_(std::move(address)),
      selector_(std::move(selector)),
      listener_(listener),
      clock_(clock) {}

void ObjectWatch::Run(const std::stop_token& stop) {
  int in_vain = 0;  // in a row
  while (!stop.stop_requested()) {
    const bool lists = version_.empty();
    received_ = false;
    const absl::Status status = lists ? List(stop) : Follow(stop);
    if (stop.stop_requested()) return;
    if (!status.ok()) listener_->OnTrouble(status);
    const bool is_gone = absl::IsOutOfRange(status);
    if (is_gone) version_.clear();
    // A watch follows its list at once, and is resumed at once when the server ends it. One that
    // breaks, or ends and has told nothing, is not asked for without rest. A list alone is no
    // progress: a server whose store was restored may forget the version of each list at once.
    if (lists && status.ok()) continue;
    in_vain = received_ && !is_gone ? 0 : in_vain + 1;
    if (status.ok() && received_) continue;
    const absl::Duration wait = base::ExponentialBackoff(in_vain + 1, kFirstBackoff, kMaxBackoff);
    if (!base::SleepUnlessStopped(clock_, wait, stop)) return;
  }
}

absl::Status ObjectWatch::List(const std::stop_token& stop) {
  MUSTER_ASSIGN_OR_RETURN(const ObjectList all, ListAll(client_, address_, selector_, stop));
  if (all.version.empty()) return absl::UnavailableError("the list has no version to watch from");
  listener_->OnAll(all.items);
  version_ = all.version;
  return absl::OkStatus();
}

absl::Status ObjectWatch::Follow(const std::stop_token& stop) {
  const std::string query = absl::StrCat(
      "watch=true&allowWatchBookmarks=true&timeoutSeconds=", absl::ToInt64Seconds(kWatchLength),
      "&resourceVersion=", QueryEscaped(version_), "&labelSelector=", QueryEscaped(selector_));
  return client_->Watch(
      address_, query, [this](const json& event) { return OnEvent(event); }, stop);
}

absl::Status ObjectWatch::OnEvent(const json& event) {
  const json* const object = FieldAt(event, {"object"});
  if (object == nullptr) return absl::UnavailableError("an event has no object");
  const std::string type = TextAt(event, {"type"});
  if (type == "ERROR") return ErrorEvent(*object);
  if (type == "BOOKMARK") {
    listener_->OnCurrent();
  } else if (type == "DELETED") {
    listener_->OnGone(*object);
  } else if (type == "ADDED" || type == "MODIFIED") {
    listener_->OnChanged(*object);
  } else {
    return absl::UnavailableError(absl::StrCat("an event of an unknown type: ", type));
  }
  const std::string version = TextAt(*object, {"metadata", "resourceVersion"});
  if (!version.empty()) version_ = version;
  received_ = true;
  return absl::OkStatus();
}

}  // namespace muster::kubernetes
