// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nats/nats_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "muster/os/find_program.h"

namespace muster::nats::testing {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr absl::Duration kLook = absl::Milliseconds(5);

[[noreturn]] void GiveUp(const std::string& why) {
  std::fprintf(stderr, "nats-server for a test: %s\n", why.c_str());
  std::abort();
}

struct sockaddr_in OnLoopback(int port) {
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A socket that holds a loopback port and never listens. The kernel does not give that port to a
// bind to port 0 or to an outgoing connection, but it gives it to a bind that names the port and
// sets SO_REUSEADDR, as nats-server does.
int HoldPort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const struct sockaddr_in any = OnLoopback(0);
  if (bind(fd, reinterpret_cast<const struct sockaddr*>(&any), sizeof(any)) != 0) {
    GiveUp("there is no port for it");
  }
  const int on = 1;  // only after the bind: before it, the socket might share a port
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  return fd;
}

int PortOf(int fd) {
  struct sockaddr_in address = {};
  socklen_t bytes = sizeof(address);
  getsockname(fd, reinterpret_cast<struct sockaddr*>(&address), &bytes);
  return ntohs(address.sin_port);
}

// Returns whether a server listens on the loopback port.
bool Answers(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const struct sockaddr_in address = OnLoopback(port);
  const bool answers =
      connect(fd, reinterpret_cast<const struct sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return answers;
}

// Its thread lasts as long as the process: the kernel kills a server when the thread that started
// it ends, and tests start servers from threads that come and go.
os::Spawner& Starter() {
  static auto* const starter = new os::Spawner;
  return *starter;
}

}  // namespace

std::vector<std::string> NatsServer::Programs() {
  const char* const named = std::getenv("MUSTER_NATS_SERVERS");
  if (named == nullptr || *named == '\0') return {"nats-server"};
  return absl::StrSplit(named, ':', absl::SkipEmpty());
}

NatsServer::NatsServer(std::string program, std::string extra_config, Persistence persistence)
    : program_(std::move(program)),
      extra_config_(std::move(extra_config)),
      persistence_(persistence),
      port_holder_(HoldPort()),
      port_(PortOf(port_holder_)) {
  Start();
}

NatsServer::~NatsServer() {
  Kill();
  close(port_holder_);
}

std::string NatsServer::url() const { return absl::StrCat("nats://127.0.0.1:", port_); }

void NatsServer::Start() {
  const std::string config = dir_ / "server.conf";
  // Without a bound of its own the server reserves no more than a share of the disk's free space,
  // and what a test may reserve would depend on the machine.
  const std::string jetstream =
      persistence_ == Persistence::kNone
          ? ""
          : absl::StrCat("jetstream { store_dir: \"", store_dir_, "\", max_file_store: 1TB }\n");
  // Not to its output, which nobody reads.
  const std::string log = absl::StrCat("log_file: \"", dir_ / "server.log", "\"\n");
  std::ofstream(config) << "host: 127.0.0.1\nport: " << port_ << "\n"
                        << log << jetstream << extra_config_;
  const auto found = os::FindProgram(program_, "");
  if (!found.ok()) GiveUp(found.status().ToString());
  os::ProcessSpec server;
  server.path = *found;
  server.argv = {program_, "-c", config};
  auto started = Starter().Start(server);
  if (!started.ok()) GiveUp(started.status().ToString());
  process_ = *std::move(started);
  AwaitPort();
}

void NatsServer::AwaitPort() {
  const absl::Time deadline = absl::Now() + kPatience;
  while (absl::Now() < deadline) {
    if (process_->HasEnded()) GiveUp(absl::StrCat(program_, " ended at once"));
    if (Answers(port_)) return;
    absl::SleepFor(kLook);
  }
  GiveUp(absl::StrCat(program_, " does not listen"));
}

void NatsServer::End(int signal) {
  if (process_ == nullptr) return;
  const pid_t id = process_->pid();
  kill(id, signal);
  siginfo_t ended{};
  waitid(P_PID, static_cast<id_t>(id), &ended, WEXITED | WNOWAIT);
  process_.reset();
}

void NatsServer::Restart() {
  Kill();
  Start();
}

void NatsServer::Freeze() {
  kill(process_->pid(), SIGSTOP);
  // Waits until the last of its threads has stopped: a running thread could answer one more time.
  waitpid(process_->pid(), nullptr, WUNTRACED);
}

void NatsServer::Thaw() { kill(process_->pid(), SIGCONT); }

}  // namespace muster::nats::testing
