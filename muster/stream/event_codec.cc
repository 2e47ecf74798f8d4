// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/event_codec.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"

namespace muster::stream {
namespace {

constexpr char kFormat = 1;

void AppendSize(size_t size, std::string* out) {
  MUSTER_CHECK(size <= UINT16_MAX, "bytes ", size);
  out->push_back(static_cast<char>(size));
  out->push_back(static_cast<char>(size >> 8));
}

void AppendText(absl::string_view text, std::string* out) {
  AppendSize(text.size(), out);
  out->append(text.data(), text.size());
}

// Each takes its value from the front of `rest`; nullopt: the bytes end before it does.

std::optional<size_t> TakeSize(absl::string_view* rest) {
  if (rest->size() < 2) return std::nullopt;
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>((*rest)[i])); };
  const size_t size = byte(0) | byte(1) << 8;
  rest->remove_prefix(2);
  return size;
}

std::optional<std::string> TakeText(absl::string_view* rest) {
  const std::optional<size_t> size = TakeSize(rest);
  if (!size.has_value() || rest->size() < *size) return std::nullopt;
  std::string text(rest->substr(0, *size));
  rest->remove_prefix(*size);
  return text;
}

// Names are in order, each once: an event has one stored form only.
std::optional<Properties> TakeProperties(absl::string_view* rest) {
  const std::optional<size_t> count = TakeSize(rest);
  if (!count.has_value()) return std::nullopt;
  Properties properties;
  for (size_t i = 0; i < *count; ++i) {
    std::optional<std::string> name = TakeText(rest);
    std::optional<std::string> value = TakeText(rest);
    if (!name.has_value() || !value.has_value()) return std::nullopt;
    if (!properties.empty() && *name <= properties.rbegin()->first) return std::nullopt;
    properties.emplace_hint(properties.end(), *std::move(name), *std::move(value));
  }
  return properties;
}

std::optional<NewEvent> Decode(absl::string_view rest) {
  std::optional<std::string> key = TakeText(&rest);
  std::optional<Properties> properties = TakeProperties(&rest);
  if (!key.has_value() || !properties.has_value()) return std::nullopt;
  return NewEvent{*std::move(key), std::string(rest), *std::move(properties)};
}

}  // namespace

std::string EncodeContent(const NewEvent& event) {
  std::string bytes;
  bytes.reserve(5 + event.key.size() + event.body.size());
  bytes.push_back(kFormat);
  AppendText(event.key, &bytes);
  AppendSize(event.properties.size(), &bytes);
  for (const auto& [name, value] : event.properties) {
    AppendText(name, &bytes);
    AppendText(value, &bytes);
  }
  absl::StrAppend(&bytes, event.body);
  return bytes;
}

absl::StatusOr<NewEvent> DecodeContent(absl::string_view bytes, absl::string_view what) {
  if (bytes.empty() || bytes[0] == 0) {
    return absl::DataLossError(absl::StrCat(what, " is no event"));
  }
  if (bytes[0] != kFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " has format ", static_cast<int>(static_cast<uint8_t>(bytes[0])),
                     ", which this muster does not know"));
  }
  std::optional<NewEvent> event = Decode(bytes.substr(1));
  if (event.has_value()) return *std::move(event);
  return absl::DataLossError(absl::StrCat(what, " is cut off, or no event"));
}

}  // namespace muster::stream
