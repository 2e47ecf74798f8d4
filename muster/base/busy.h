// Busy: what is needed belongs to somebody else, who may keep it for days.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::base {

// FailedPrecondition, so that nobody who only waits out short troubles tries it again and again;
// but whoever asked may come back later.
absl::Status Busy(absl::string_view message);

// Whether `status` came from Busy, annotated or not.
bool IsBusy(const absl::Status& status);

}  // namespace muster::base
