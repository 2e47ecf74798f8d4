// For errors about names: what may have been meant, and what there is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster::base {

// Names that ListNames lists.
inline constexpr int kMaxListedNames = 30;
// Of what Quoted quotes: errors are for people, and end up in logs.
inline constexpr size_t kMaxQuotedBytes = 80;

// The one of `names` that `name` is probably a slip of (few letters differ, letter case apart), or
// "" when none is near.
std::string NearestName(absl::string_view name, absl::Span<const std::string> names);

// "; did you mean 'quantity'?", or "".
std::string DidYouMean(absl::string_view name, absl::Span<const std::string> names);

// "'a', 'b' and 12 more"; each name cut and escaped so that it is fit for a log.
std::string ListNames(absl::Span<const std::string> names);

// Text from elsewhere, fit for an error: quoted, cut at kMaxQuotedBytes, and what is not printable
// UTF-8 escaped. A character is never cut in two.
std::string Quoted(absl::string_view text);

}  // namespace muster::base
