// SPDX-License-Identifier: Apache-2.0
#include "muster/base/check.h"

#include <cstdlib>

#include "muster/base/log.h"

namespace muster::base {

void CheckFailed(absl::string_view file, int line, absl::string_view condition,
                 const std::string& values) {
  Log(kError, "an invariant of muster is broken; the process stops",
      {{"at", absl::StrCat(file, ":", line)}, {"condition", condition}, {"values", values}});
  std::abort();
}

}  // namespace muster::base
