// SPDX-License-Identifier: Apache-2.0

// What the fuzz targets share: how a target says that a property is broken.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/string_view.h"

namespace muster::fuzz {

// Ends the process unless `holds`, which makes libFuzzer keep the input. `property` says what
// should have been true.
inline void Must(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "broken property: %s\n", property);
  std::abort();
}

// The input as text. libFuzzer allocates it at its exact size, so that a step beyond its end shows.
inline absl::string_view Text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace muster::fuzz
