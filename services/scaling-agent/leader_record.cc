// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/leader_record.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {

namespace {

absl::Status NoLeaderRecord(absl::string_view text) {
  return absl::DataLossError(absl::StrCat("no record of a leader: '", text.substr(0, 200), "'"));
}

}  // namespace

std::string Encode(const LeaderRecord& record) {
  const nlohmann::ordered_json json = {
      {"version", kLeaderRecordVersion},
      {"holder", record.holder},
      {"address", record.address},
      {"token", record.token},
      {"beat", record.beat},
      {"duration_ms", absl::ToInt64Milliseconds(record.duration)},
  };
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

absl::StatusOr<LeaderRecord> DecodeLeaderRecord(absl::string_view text) {
  const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return NoLeaderRecord(text);
  LeaderRecord record;
  try {
    if (json.at("version").get<int>() > kLeaderRecordVersion) {
      return absl::FailedPreconditionError("the record of the leader is of a later muster");
    }
    record.holder = json.at("holder").get<std::string>();
    record.address = json.at("address").get<std::string>();
    record.token = json.at("token").get<int64_t>();
    record.beat = json.at("beat").get<int64_t>();
    record.duration = absl::Milliseconds(json.at("duration_ms").get<int64_t>());
  } catch (const nlohmann::json::exception&) {
    return NoLeaderRecord(text);
  }
  // The next leader takes the token above it.
  const bool has_next = record.token < std::numeric_limits<int64_t>::max();
  if (record.token < 0 || !has_next) return NoLeaderRecord(text);
  record.duration = std::clamp(record.duration, absl::ZeroDuration(), kMaxLeaseDuration);
  return record;
}

}  // namespace muster::scaling_agent
