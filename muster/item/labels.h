// SPDX-License-Identifier: Apache-2.0

// Labels: names and values that a submitter gives a batch, to find it by later.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::item {

// By name.
using Labels = std::map<std::string, std::string>;

// The names that only muster gives begin so.
inline constexpr char kOwnPrefix[] = "muster/";
// The label of the batches that calls are made into. Lists leave these out unless they are asked.
inline constexpr char kCallLabel[] = "muster/call";

// Of one batch: its record and each of its statuses carry them.
inline constexpr size_t kMaxLabels = 16;
inline constexpr size_t kMaxLabelNameBytes = 63;
inline constexpr size_t kMaxLabelValueBytes = 256;

// InvalidArgument naming the first label that no batch can have: a name is 1 to 63 letters, digits,
// '-', '_', '.' and '/', and begins and ends with a letter or digit; a value is UTF-8 without
// control characters.
absl::Status CheckLabels(const Labels& labels);

// The same of labels that a client chooses, among which none may be muster's own: a batch with
// kCallLabel would be missing from lists.
absl::Status CheckChosenLabels(const Labels& labels);

// "name=value". InvalidArgument: it is none, or a label that no batch can have.
absl::StatusOr<std::pair<std::string, std::string>> ParseLabel(absl::string_view text);

}  // namespace muster::item
