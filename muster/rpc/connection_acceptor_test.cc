// SPDX-License-Identifier: Apache-2.0

// Real sockets on loopback; the test stands for gRPC, which takes connections over.
#include "muster/rpc/connection_acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/os/file_descriptor.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::rpc {
namespace {

using ::testing::HasSubstr;

os::FileDescriptor Socket() { return os::FileDescriptor(socket(AF_INET, SOCK_STREAM, 0)); }

void Connect(const os::FileDescriptor& socket, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  ASSERT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

os::FileDescriptor Connected(int port) {
  os::FileDescriptor socket = Socket();
  Connect(socket, port);
  return socket;
}

// Waits until the other side has closed the connection.
void AwaitClosed(const os::FileDescriptor& socket) {
  char byte = 0;
  EXPECT_LE(read(socket.get(), &byte, 1), 0);
}

class ConnectionAcceptorTest : public ::testing::Test {
 protected:
  void Start(size_t max_connections) {
    acceptor_ = std::make_unique<ConnectionAcceptor>(max_connections, &clock_);
    StartOn(ListenOn({"127.0.0.1", 0}));
  }
  void StartOn(absl::StatusOr<ListenSockets> sockets) {
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    port_ = sockets->address.port;
    const absl::Status added =
        acceptor_->Add(*std::move(sockets), [this](int, int fd) { Take(fd); });
    ASSERT_TRUE(added.ok()) << added;
    acceptor_->Start();
  }

  void Take(int fd) {
    base::MutexLock lock(&mu_);
    taken_.emplace_back(fd);
    changed_.NotifyAll();
  }
  // Waits until so many connections are taken.
  void AwaitTaken(size_t count) {
    base::MutexLock lock(&mu_);
    while (taken_.size() < count) changed_.Wait(&mu_);
  }
  // Waits until the acceptor has refused so many connections, or taken one. Answers whether it is
  // the former.
  bool AwaitRefused(int64_t count) {
    while (acceptor_->refused() < count) {
      {
        base::MutexLock lock(&mu_);
        if (!taken_.empty()) return false;
      }
      base::LetOthersRun();
    }
    return true;
  }
  void CloseTaken() {
    base::MutexLock lock(&mu_);
    taken_.clear();
  }

  base::FakeClock clock_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<os::FileDescriptor> taken_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<ConnectionAcceptor> acceptor_;
  int port_ = 0;
};

TEST_F(ConnectionAcceptorTest, RefusesWhatIsBeyondItsBoundAndTakesAgainWhenOthersHaveClosed) {
  const base::LogCapture log;
  Start(2);
  std::vector<os::FileDescriptor> clients;
  for (int i = 0; i < 2; ++i) clients.push_back(Connected(port_));
  AwaitTaken(2);
  for (int i = 0; i < 5; ++i) AwaitClosed(Connected(port_));
  EXPECT_EQ(acceptor_->refused(), 5);
  CloseTaken();
  for (int i = 0; i < 2; ++i) clients.push_back(Connected(port_));
  AwaitTaken(2);
  AwaitClosed(Connected(port_));
  EXPECT_EQ(acceptor_->refused(), 6);
  EXPECT_THAT(log.lines(), ::testing::Contains(HasSubstr("connections are refused")).Times(1));
}

// Lowers the soft limit of descriptors for a scope.
class DescriptorLimitTo {
 public:
  explicit DescriptorLimitTo(int most) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit low = {.rlim_cur = static_cast<rlim_t>(most), .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  }
  ~DescriptorLimitTo() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_ = {};
};

// A descriptor for every free number below the limit.
std::vector<os::FileDescriptor> AllDescriptors() {
  std::vector<os::FileDescriptor> all;
  for (;;) {
    os::FileDescriptor one(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (one.get() < 0) return all;
    all.push_back(std::move(one));
  }
}

TEST_F(ConnectionAcceptorTest, GoesOnAfterTheProcessHadNoDescriptorLeft) {
  Start(100);
  std::vector<os::FileDescriptor> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(Socket());
  size_t next = 0;
  {
    const DescriptorLimitTo low(clients.back().get() + 3);
    std::vector<std::vector<os::FileDescriptor>> all;
    all.push_back(AllDescriptors());
    for (int refused = 0; refused < 3;) {
      ASSERT_LT(next, clients.size() - 1);
      const os::FileDescriptor& client = clients[next++];
      Connect(client, port_);
      if (AwaitRefused(refused + 1)) {
        ++refused;
        AwaitClosed(client);
        continue;
      }
      // A thread that gRPC has left from an earlier test may close one of its own at any time: then
      // the client is taken, and there is none left for the next one. Not after a refusal: the
      // acceptor may be about to take its reserve back.
      CloseTaken();
      all.push_back(AllDescriptors());
    }
    EXPECT_EQ(acceptor_->refused(), 3);
  }
  Connect(clients[next], port_);
  AwaitTaken(1);
}

TEST_F(ConnectionAcceptorTest, LeavesSpareDescriptorsToTheRestOfTheProcess) {
  const int next = Socket().get();  // the lowest number that is free
  std::vector<os::FileDescriptor> clients;
  // Clients of this process take numbers, too: one for each connection.
  const int limit = (next + 20) * 4 / 3;
  const DescriptorLimitTo low(limit);
  Start(100);
  while (acceptor_->refused() == 0) {
    clients.push_back(Connected(port_));
    ASSERT_LE(clients.back().get(), limit - limit / 4 + 1) << "connections have the spare ones";
    if (clients.size() > 100) break;
    // The next client does not come before this one is taken or refused.
    base::MutexLock lock(&mu_);
    while (taken_.size() < clients.size() && acceptor_->refused() == 0) {
      changed_.WaitUntil(&mu_, std::chrono::steady_clock::now() + std::chrono::milliseconds(10));
    }
  }
  EXPECT_GT(acceptor_->refused(), 0);
  EXPECT_GE(AllDescriptors().size(), static_cast<size_t>(limit / 4 - 3));
}

TEST_F(ConnectionAcceptorTest, ListensOnOnePortForAllThatANameStandsFor) {
  acceptor_ = std::make_unique<ConnectionAcceptor>(1, &clock_);
  StartOn(ListenOn({"localhost", 0}));
  const os::FileDescriptor client = Connected(port_);
  AwaitTaken(1);
}

TEST_F(ConnectionAcceptorTest, ClosesItsPortWhenItStops) {
  Start(1);
  acceptor_->Stop();
  acceptor_->Stop();
  EXPECT_TRUE(ListenOn({"127.0.0.1", port_}).ok());
}

TEST(ListenSockets, OfAPortThatIsTakenAreRefused) {
  const absl::StatusOr<ListenSockets> first = ListenOn({"127.0.0.1", 0});
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status taken = ListenOn(first->address).status();
  EXPECT_TRUE(absl::IsUnavailable(taken)) << taken;
  EXPECT_THAT(std::string(taken.message()), HasSubstr("cannot listen on 127.0.0.1:"));
}

}  // namespace
}  // namespace muster::rpc
