#include "muster/scaling/actuator/process/standing_orders.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/scaling/actuator/process/limits.h"
#include "muster/scaling/actuator/process/state_file.h"
#include "nlohmann/json.hpp"

namespace muster::scaling::actuator::process {
namespace {

using Json = nlohmann::json;

// A change that older readers would misread needs another number.
constexpr int kOrdersVersion = 1;
constexpr char kOrdersKey[] = "muster_orders";

}  // namespace

int DesiredState::WantedOf(std::string_view target) const {
  const auto found = wanted.find(target);
  return found == wanted.end() ? 0 : found->second;
}

std::string EncodeDesiredState(const DesiredState& orders) {
  return Json({{kOrdersKey, kOrdersVersion},
               {"highest_token", orders.highest_token},
               {"wanted", orders.wanted}})
             .dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

absl::StatusOr<DesiredState> DecodeDesiredState(absl::string_view text) {
  const Json object = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!object.is_object() || object.value(kOrdersKey, Json()) != kOrdersVersion) {
    return absl::DataLossError(absl::StrCat("no '", kOrdersKey, "' of version ", kOrdersVersion));
  }
  try {
    DesiredState orders;
    orders.highest_token = object.at("highest_token").get<int64_t>();
    for (const auto& [target, wanted] : object.at("wanted").items()) {
      orders.wanted.emplace(target, std::clamp(wanted.get<int>(), 0, kMaxReplicas));
    }
    return orders;
  } catch (const Json::exception& error) {
    return absl::DataLossError(error.what());
  }
}

absl::StatusOr<DesiredState> ReadDesiredState(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadStateFile(path);
  if (absl::IsNotFound(text.status())) return DesiredState();
  MUSTER_RETURN_IF_ERROR(text.status());
  absl::StatusOr<DesiredState> orders = DecodeDesiredState(*text);
  if (!orders.ok()) return base::Annotate(orders.status(), path);
  return orders;
}

absl::Status WriteDesiredState(const std::string& path, const DesiredState& orders) {
  return WriteStateFile(path, EncodeDesiredState(orders));
}

}  // namespace muster::scaling::actuator::process
