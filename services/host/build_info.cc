// Apart from everything else: a new commit compiles this file again.
#include "services/host/build_info.h"

namespace muster::host {

absl::string_view BuildVersion() { return MUSTER_VERSION; }

absl::string_view BuildRevision() { return MUSTER_REVISION; }

std::string BuildInWords() { return MUSTER_VERSION " (" MUSTER_REVISION ")"; }

}  // namespace muster::host
