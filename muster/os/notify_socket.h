// SPDX-License-Identifier: Apache-2.0

// NotifySocket: hears from a program that this process starts whether it is ready, as systemd does
// (sd_notify(3)). Notifier: tells it, to systemd or to a NotifySocket.
//
//   starter: NotifySocket ── NOTIFY_SOCKET=@name in the program's environment ──► program: Notifier
//                  ▲                                                                    │
//                  └── datagrams of lines: READY=1 · X_MUSTER_READY=0 · STOPPING=1 ─────┘
//                                          X_MUSTER_METRICS=HOST:PORT
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/os/file_descriptor.h"

namespace muster::os {

inline constexpr char kNotifySocketVariable[] = "NOTIFY_SOCKET";

// Not thread-safe. The name is the kernel's, in no file system: it goes with this object, also when
// the process is killed.
class NotifySocket {
 public:
  static absl::StatusOr<NotifySocket> Open();

  // What the program gets as NOTIFY_SOCKET.
  const std::string& name() const { return name_; }
  // Readable in poll() when something was told.
  int fd() const { return socket_.get(); }

  // Reads what has come, up to a bound: true if READY=1 was told last, false if X_MUSTER_READY=0 or
  // STOPPING=1 was, nullopt if none of these was. What other users than this process's own and root
  // send is ignored.
  std::optional<bool> TakeReadiness();
  // HOST:PORT at which the program serves its metrics, of what TakeReadiness has read; empty: the
  // program has told none.
  const std::string& metrics() const { return metrics_; }

 private:
  NotifySocket(FileDescriptor socket, std::string name)
      : socket_(std::move(socket)), name_(std::move(name)) {}

  void ReadLines(absl::string_view datagram, std::optional<bool>* readiness);

  FileDescriptor socket_;
  std::string name_;
  std::string metrics_;
};

// Thread-safe.
class Notifier {
 public:
  // `address`: a path, or @NAME for one without a file; empty: nothing waits, and what is told goes
  // nowhere.
  explicit Notifier(std::string address) : address_(std::move(address)) {}

  // Tells whether this process is ready; `status` is for people (`systemctl status`), on one line.
  // `metrics`: HOST:PORT at which it serves them; empty: nowhere.
  // Waits a second at most for room. Errors: nothing hears it.
  absl::Status TellReady(bool ready, absl::string_view status,
                         absl::string_view metrics = "") const;

 private:
  const std::string address_;
};

// NOTIFY_SOCKET; empty: it is not set. Removes it from the environment, so that the programs that
// this process starts do not speak for it. Call it before any other thread starts.
std::string TakeNotifyAddress();

}  // namespace muster::os
