// SPDX-License-Identifier: Apache-2.0

// Tells the process that started this one's parent whether that is ready, and where it serves its
// metrics: tell_ready 1|0 [HOST:PORT].
#include <iostream>

#include "absl/strings/string_view.h"
#include "muster/os/notify_socket.h"

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  const bool ready = absl::string_view(argv[1]) == "1";
  const muster::os::Notifier notifier(muster::os::TakeNotifyAddress());
  const absl::Status told = notifier.TellReady(ready, "", argc == 3 ? argv[2] : "");
  if (!told.ok()) std::cerr << told << std::endl;
  return told.ok() ? 0 : 1;
}
