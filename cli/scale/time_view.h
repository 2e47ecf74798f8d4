// Times of messages, for people and for programs.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// "in 4 min 30 s", "12 s ago", "now".
std::string FromNow(absl::Time time, absl::Time now);

// "4 min 30 s".
std::string DurationCell(const google::protobuf::Duration& duration);

// Each is null where the message lacks it: TimeJson(target.has_deadline(), target.deadline()).
nlohmann::ordered_json TimeJson(bool has, const google::protobuf::Timestamp& time);
nlohmann::ordered_json SecondsJson(bool has, const google::protobuf::Duration& duration);

}  // namespace muster::cli
