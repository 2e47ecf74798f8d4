// SPDX-License-Identifier: Apache-2.0

// ConnectionAcceptor: accepts the connections of a server and hands them to gRPC, up to a bound.
//
// gRPC's own listener ends for good at the first accept that fails, as when the process has no
// descriptor left (grpc/grpc issue 20418): the server is deaf from then on, and its health, which
// is asked over connections that are open already, says that all is well. This one refuses what is
// beyond its bounds, by closing it, and goes on.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/os/file_descriptor.h"
#include "muster/rpc/listen_sockets.h"

namespace muster::rpc {

// Not thread-safe, but for refused().
class ConnectionAcceptor {
 public:
  // Takes the connection `fd` over, which came to `listener`; quick. It closes `fd` in the end.
  using Take = std::function<void(int listener, int fd)>;

  // Of the connections that were taken, at most `max_connections` are open at a time. `clock` is
  // not owned; it paces the log.
  ConnectionAcceptor(size_t max_connections, base::Clock* clock);
  ~ConnectionAcceptor();  // Stop()s
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;

  // Accepts from `sockets` once it starts; call it before. Unavailable: no descriptor is left.
  absl::Status Add(ListenSockets sockets, Take take);

  // Accepts on a thread of its own.
  void Start();
  // Accepts no more, and answers the sockets, which listen on until they are destroyed;
  // connections that were taken stay. Stopping twice, or before Start, is fine.
  std::vector<ListenSockets> Stop();

  // Connections that were closed because of a bound.
  int64_t refused() const { return refused_; }

 private:
  struct Listener {
    ListenSockets sockets;
    Take take;
  };

  void Run();
  // Accepts what waits at `socket`. False: it must wait a moment.
  bool AcceptFrom(int socket, const Take& take);
  void Admit(int fd, int socket, const Take& take);
  bool HasRoom();
  // Forgets the connections that gRPC has closed.
  void Sweep();
  void TrimMemory();
  // Accepts one connection in place of the reserve descriptor, and closes it. False: the process
  // has no descriptor even for that.
  bool ShedOne(int socket);
  void NoteRefusal();

  const size_t max_connections_;
  const int max_descriptor_;  // a connection with a higher number is refused
  base::Clock* const clock_;  // not owned
  std::vector<Listener> listeners_;
  os::FileDescriptor wake_;     // an eventfd: Stop writes it
  os::FileDescriptor reserve_;  // given up for a moment to refuse a connection when none is left
  std::atomic<int64_t> refused_ = 0;

  // Only of the thread: by descriptor, the inode of its socket. gRPC does not tell when it closes
  // one; another inode under the number, or none, does.
  std::unordered_map<int, ino_t> open_;
  size_t most_open_ = 0;                              // since memory was trimmed
  absl::Duration swept_ = -absl::InfiniteDuration();  // monotonic
  absl::Duration sweep_took_ = absl::ZeroDuration();  // the last one
  absl::Duration told_ = -absl::InfiniteDuration();   // monotonic
  int64_t told_refused_ = 0;

  std::thread thread_;  // last: it uses all of these
};

}  // namespace muster::rpc
