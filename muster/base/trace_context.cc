// SPDX-License-Identifier: Apache-2.0
#include "muster/base/trace_context.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/random.h"

namespace muster::base {
namespace {

constexpr char kExample[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
// Of version 00. A later one may have more behind another dash.
constexpr size_t kTraceparentSize = sizeof(kExample) - 1;
constexpr size_t kStoredSize = 26;
constexpr int kInvalidVersion = 0xff;
constexpr uint8_t kKnownFlags = 1;

absl::Status NoTraceparent(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("is no W3C traceparent, as ", kExample, ": ", why));
}

// Lower-case digits only, as the standard has it; nullopt: something else.
std::optional<uint64_t> ReadHex(absl::string_view digits) {
  uint64_t number = 0;
  for (const char digit : digits) {
    const bool is_letter = digit >= 'a' && digit <= 'f';
    if (!is_letter && !(digit >= '0' && digit <= '9')) return std::nullopt;
    number = number << 4 | static_cast<uint64_t>(is_letter ? digit - 'a' + 10 : digit - '0');
  }
  return number;
}

void AppendBigEndian(uint64_t number, std::string* bytes) {
  for (int shift = 56; shift >= 0; shift -= 8) bytes->push_back(static_cast<char>(number >> shift));
}

uint64_t ReadBigEndian(absl::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

bool HasIds(const TraceContext& trace) {
  return (trace.trace_high != 0 || trace.trace_low != 0) && trace.parent != 0;
}

uint64_t NotZero(const std::function<uint64_t()>& random) {
  uint64_t number = 0;
  while (number == 0) number = random();
  return number;
}

// Samplers of other systems decide by the lowest 56 bits of a trace id, too.
bool IsSampled(uint64_t trace_low, double rate) {
  constexpr uint64_t kSteps = uint64_t{1} << 56;
  if (!(rate > 0)) return false;  // no number, either
  if (rate >= 1) return true;
  return trace_low % kSteps < static_cast<uint64_t>(rate * static_cast<double>(kSteps));
}

}  // namespace

std::string TraceContext::ToTraceparent() const {
  return absl::StrFormat("00-%s-%016x-%02x", TraceId(), parent, flags);
}

std::string TraceContext::TraceId() const {
  return absl::StrFormat("%016x%016x", trace_high, trace_low);
}

std::string TraceContext::ToBytes() const {
  std::string bytes(1, '\0');
  bytes.reserve(kStoredSize);
  AppendBigEndian(trace_high, &bytes);
  AppendBigEndian(trace_low, &bytes);
  AppendBigEndian(parent, &bytes);
  bytes.push_back(static_cast<char>(flags));
  return bytes;
}

absl::StatusOr<TraceContext> TraceContext::FromTraceparent(absl::string_view text) {
  if (text.size() < kTraceparentSize) return NoTraceparent("it is too short");
  if (text[2] != '-' || text[35] != '-' || text[52] != '-') {
    return NoTraceparent("its dashes are in the wrong places");
  }
  const auto version = ReadHex(text.substr(0, 2)), high = ReadHex(text.substr(3, 16)),
             low = ReadHex(text.substr(19, 16)), parent = ReadHex(text.substr(36, 16)),
             flags = ReadHex(text.substr(53, 2));
  if (!version || !high || !low || !parent || !flags) {
    return NoTraceparent("it has other than lower-case hexadecimal digits");
  }
  if (*version == kInvalidVersion) return NoTraceparent("there is no version ff");
  const bool is_longer = text.size() > kTraceparentSize;
  if (is_longer && (*version == 0 || text[kTraceparentSize] != '-')) {
    return NoTraceparent("it is too long");
  }
  TraceContext trace{*high, *low, *parent, static_cast<uint8_t>(*flags & kKnownFlags), ""};
  if (!HasIds(trace)) return NoTraceparent("an id is zero");
  return trace;
}

std::optional<TraceContext> TraceContext::FromBytes(absl::string_view bytes) {
  if (bytes.size() != kStoredSize || bytes[0] != '\0') return std::nullopt;
  TraceContext trace{ReadBigEndian(bytes.substr(1)), ReadBigEndian(bytes.substr(9)),
                     ReadBigEndian(bytes.substr(17)),
                     static_cast<uint8_t>(static_cast<uint8_t>(bytes[25]) & kKnownFlags), ""};
  if (!HasIds(trace)) return std::nullopt;
  return trace;
}

absl::Status CheckTraceState(absl::string_view state) {
  const bool is_printable =
      std::all_of(state.begin(), state.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (state.size() <= kMaxTraceStateBytes && is_printable) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("must have at most ", kMaxTraceStateBytes, " bytes of printable ASCII"));
}

TraceContext NewTrace(double rate, const std::function<uint64_t()>& random) {
  TraceContext trace;
  trace.trace_high = NotZero(random);
  trace.trace_low = random();
  trace.parent = NotZero(random);
  trace.flags = IsSampled(trace.trace_low, rate) ? 1 : 0;
  return trace;
}

TraceContext NewTrace(double rate) { return NewTrace(rate, RandomSeed); }

}  // namespace muster::base
