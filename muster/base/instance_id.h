// Who is who among the role instances: the owner of leases, the sender of events, a field of logs.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace muster::base {

// "processor-myhost-4711-9f3a2c1b": role, host, process id and a random part, so that two instances
// never share one, even after a restart with the same process id. Only [a-z0-9-]: it goes into
// subjects and keys.
std::string MakeInstanceId(absl::string_view role);

}  // namespace muster::base
