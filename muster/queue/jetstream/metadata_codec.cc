#include "muster/queue/jetstream/metadata_codec.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace muster::queue::jetstream {

using nlohmann::json;

std::string EncodeMetadata(const queue::Metadata& metadata) {
  return json(metadata).dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<queue::Metadata> DecodeMetadata(const queue::QueueId& queue,
                                               const std::string& text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  queue::Metadata metadata;
  for (const auto& [name, value] : object.items()) {
    if (value.is_string()) metadata[name] = value.get<std::string>();
  }
  if (object.is_object() && metadata.size() == object.size()) return metadata;
  return absl::DataLossError(
      absl::StrCat("the metadata of queue '", queue.ToString(), "' cannot be read"));
}

}  // namespace muster::queue::jetstream
