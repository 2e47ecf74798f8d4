// SPDX-License-Identifier: Apache-2.0
#include "muster/backend/backend.h"

#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/trigger_bus.h"
#include "muster/os/temp_dir.h"
#include "muster/v1/heartbeat.pb.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::backend {

namespace {

using ::testing::HasSubstr;

class BackendTest : public ::testing::Test {
 protected:
  const os::TempDir root_;
  const std::string dir_ = root_ / "data";
  const DataDirUrls urls_{dir_};
};

TEST_F(BackendTest, OpensEverySeamOfADataDirectory) {
  EXPECT_TRUE(
      OpenQueueStore(urls_.queue, Mode::kReadWrite, Holders::kInProcess, base::RealClock()).ok());
  EXPECT_TRUE(OpenBatchLedger(urls_.ledger, Mode::kReadWrite).ok());
  EXPECT_TRUE(OpenSyncStore(urls_.sync).ok());
  EXPECT_TRUE(OpenEventStreamStore(urls_.stream, Mode::kReadWrite, base::RealClock()).ok());
  EXPECT_TRUE(OpenBlobStore(urls_.blobs).ok());
  EXPECT_TRUE(OpenReportStore(urls_.report, Mode::kReadWrite, base::RealClock()).ok());
  EXPECT_TRUE(OpenTriggerBus("local:").ok());
}

TEST_F(BackendTest, ReadOnlyChangesNothingOnDisk) {
  EXPECT_TRUE(absl::IsNotFound(
      OpenQueueStore(urls_.queue, Mode::kReadOnly, Holders::kElsewhere, base::RealClock())
          .status()));
  EXPECT_TRUE(absl::IsNotFound(OpenBatchLedger(urls_.ledger, Mode::kReadOnly).status()));
  EXPECT_TRUE(absl::IsNotFound(
      OpenEventStreamStore(urls_.stream, Mode::kReadOnly, base::RealClock()).status()));
  EXPECT_TRUE(
      absl::IsNotFound(OpenReportStore(urls_.report, Mode::kReadOnly, base::RealClock()).status()));
  EXPECT_FALSE(std::filesystem::exists(dir_));
}

TEST_F(BackendTest, SaysWhichUrlsItTakes) {
  const absl::Status status = OpenSyncStore("redis:localhost").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("rocksdb:"));
}

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class BackendsTest : public ::testing::TestWithParam<std::string> {
 protected:
  nats::testing::NatsServer server_{GetParam()};
  Backends backends_;
};

TEST_P(BackendsTest, OpensWhatIsOnANatsServer) {
  const auto sync = backends_.OpenSyncStore(server_.url());
  ASSERT_TRUE(sync.ok()) << sync.status();
  EXPECT_TRUE(*(*sync)->TryWrite("k", "1", sync::kAbsent));
  const auto blobs = backends_.OpenBlobStore(server_.url());
  ASSERT_TRUE(blobs.ok()) << blobs.status();
  EXPECT_TRUE((*blobs)->Put("b", "body").ok());
  const auto streams =
      backends_.OpenEventStreamStore(server_.url(), Mode::kReadWrite, base::RealClock());
  ASSERT_TRUE(streams.ok()) << streams.status();
  EXPECT_TRUE((*streams)->Create("s", {.partitions = 1}).ok());
  const auto bus = backends_.OpenTriggerBus(server_.url());
  ASSERT_TRUE(bus.ok()) << bus.status();
  std::promise<std::string> heard;
  const auto subscription =
      (*bus)->Subscribe([&](const auto& event) { heard.set_value(event.from); }).value();
  EXPECT_TRUE((*bus)->Publish(bus::WorkDetected("me", "acme", "in", 1)).ok());
  EXPECT_EQ(heard.get_future().get(), "me");
  EXPECT_TRUE(backends_.OpenHeartbeatBus(server_.url()).value()->Publish({}).ok());
}

TEST_P(BackendsTest, ProcessesShareWhatIsOnTheServer) {
  Backends other;
  const auto open = [&](Backends* backends) {
    return backends
        ->OpenQueueStore(server_.url(), Mode::kReadWrite, Holders::kElsewhere, base::RealClock())
        .value();
  };
  const auto mine = open(&backends_), theirs = open(&other);
  const queue::QueueId queue{"acme", "work"};
  ASSERT_TRUE(mine->CreateQueue(queue, {}).ok());
  ASSERT_TRUE(mine->Put(queue, std::vector<queue::NewMessage>(1)).ok());
  EXPECT_EQ(theirs->Receive(queue, {})->size(), 1u);
  ASSERT_TRUE(backends_.OpenBlobStore(server_.url()).value()->Put("b", "body").ok());
  EXPECT_EQ(*other.OpenBlobStore(server_.url()).value()->Get("b"), "body");
}

TEST_P(BackendsTest, OpensReadersThatChangeNothing) {
  EXPECT_TRUE(absl::IsNotFound(backends_.OpenSyncStore(server_.url(), Mode::kReadOnly).status()));
  ASSERT_TRUE(*backends_.OpenSyncStore(server_.url()).value()->TryWrite("k", "1", sync::kAbsent));
  const auto reader = backends_.OpenSyncStore(server_.url(), Mode::kReadOnly).value();
  EXPECT_EQ(reader->Get("k")->data, "1");
  EXPECT_FALSE(reader->TryWrite("k", "2", reader->Get("k")->version).ok());
}

TEST_P(BackendsTest, KeepsInstallationsApartByTheirBuckets) {
  Backends other({.bucket = "other"});
  ASSERT_TRUE(backends_.OpenBlobStore(server_.url()).value()->Put("b", "body").ok());
  EXPECT_TRUE(absl::IsNotFound(other.OpenBlobStore(server_.url()).value()->Get("b").status()));
}

TEST_P(BackendsTest, KeepsHeartbeatsOfInstallationsApartByTheirAccountsAndBuckets) {
  Backends ours({.account = "local"}), colleague({.account = "local"});
  Backends other_account({.account = "acme"}), other_bucket({.account = "local", .bucket = "acme"});
  std::vector<std::string> heard;
  std::promise<void> last;
  const auto bus = ours.OpenHeartbeatBus(server_.url()).value();
  const auto subscription = bus->Subscribe([&](const v1::Heartbeat& heartbeat) {
                                 heard.push_back(heartbeat.instance().instance());
                                 if (heard.back() == "colleague") last.set_value();
                               })
                                .value();
  const auto send = [&](Backends* backends, const std::string& instance) {
    v1::Heartbeat heartbeat;
    heartbeat.mutable_instance()->set_instance(instance);
    ASSERT_TRUE(backends->OpenHeartbeatBus(server_.url()).value()->Publish(heartbeat).ok());
  };
  send(&other_account, "of another account");
  send(&other_bucket, "of another bucket");
  send(&backends_, "of one that names none");
  send(&colleague, "colleague");
  last.get_future().wait();
  EXPECT_THAT(heard, ElementsAre("of one that names none", "colleague"));
}

TEST_P(BackendsTest, ReadsWhatTheServerKeepsForItAlone) {
  NatsKept none;
  EXPECT_TRUE(backends_.ReadStreams(&none).ok()) << "it is not connected to any";
  EXPECT_FALSE(none.has_storage);
  Backends other({.bucket = "other"});
  ASSERT_TRUE(other.OpenBlobStore(server_.url()).value()->Put("b", "body").ok());
  ASSERT_TRUE(backends_.OpenBlobStore(server_.url()).value()->Put("b", "body").ok());
  const auto queues =
      backends_
          .OpenQueueStore(server_.url(), Mode::kReadWrite, Holders::kElsewhere, base::RealClock())
          .value();
  const queue::QueueId queue{"acme", "work"};
  ASSERT_TRUE(queues->CreateQueue(queue, {}).ok());
  ASSERT_TRUE(queues->Put(queue, std::vector<queue::NewMessage>(3)).ok());
  NatsKept kept;
  ASSERT_TRUE(backends_.ReadStreams(&kept).ok());
  EXPECT_TRUE(kept.has_storage);
  EXPECT_GT(kept.storage_bytes, 0u);
  std::map<std::string, NatsStream> streams;
  for (const NatsStream& stream : kept.streams) streams[stream.name] = stream;
  EXPECT_TRUE(streams.contains("OBJ_muster"));
  EXPECT_FALSE(streams.contains("OBJ_other"));
  ASSERT_TRUE(streams.contains("MUSTER_acme_work"));
  const NatsStream& work = streams.at("MUSTER_acme_work");
  EXPECT_EQ(work.messages, 3u);
  EXPECT_GT(work.bytes, 0u);
  EXPECT_EQ(work.consumers, 1);
  EXPECT_LT(work.first_age, absl::Hours(1));
  EXPECT_GT(streams.at("MUSTER-ATTEMPTS").max_bytes, 0);
  server_.Kill();
  EXPECT_TRUE(absl::IsUnavailable(backends_.ReadStreams(&none)));
}

// The server itself counts the connections.
TEST_P(BackendsTest, HasOneConnectionForAllOnOneServer) {
  const nats::testing::NatsServer small(GetParam(), "max_connections: 1\n");
  // The server may still count the connection that probed whether it listens.
  while (!backends_.OpenSyncStore(small.url()).ok()) {
  }
  EXPECT_TRUE(backends_.OpenBlobStore(small.url()).ok());
  EXPECT_TRUE(backends_.OpenTriggerBus(small.url()).ok());
  EXPECT_TRUE(backends_.OpenHeartbeatBus(small.url()).ok());
  EXPECT_FALSE(Backends().OpenTriggerBus(small.url()).ok());
}

TEST_P(BackendsTest, TriesAnewWhereNobodyAnsweredBefore) {
  server_.Kill();
  const absl::Status nobody = backends_.OpenSyncStore(server_.url()).status();
  EXPECT_TRUE(absl::IsUnavailable(nobody)) << nobody;
  server_.Restart();
  const auto sync = backends_.OpenSyncStore(server_.url());
  EXPECT_TRUE(sync.ok()) << sync.status();
}

INSTANTIATE_TEST_SUITE_P(Servers, BackendsTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

TEST(BackendsUrlTest, OpensWhatIsOnThisMachineToo) {
  const os::TempDir root;
  const DataDirUrls urls(root / "data");
  Backends backends;
  EXPECT_TRUE(backends.OpenSyncStore(urls.sync).ok());
  EXPECT_TRUE(backends.OpenBlobStore(urls.blobs).ok());
  EXPECT_TRUE(backends.OpenTriggerBus("local:").ok());
  EXPECT_TRUE(backends.OpenHeartbeatBus("local:").ok());
}

TEST(BackendsUrlTest, SaysWhichUrlsItTakes) {
  const absl::Status status = Backends().OpenSyncStore("redis:localhost").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), AllOf(HasSubstr("rocksdb:"), HasSubstr("nats://")));
}

// A URL whose scheme was left out went to the log as it stood.
TEST(BackendsUrlTest, ShowsNoPasswordOfAUrlThatItDoesNotTake) {
  for (const char* url : {"muster:secret@nats:4222", "NATS://muster:secret@nats:4222"}) {
    const absl::Status status = Backends().OpenSyncStore(url).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << url;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("nats:4222"), Not(HasSubstr("secret")))) << url;
  }
  EXPECT_THAT(OpenSyncStore("nats://muster:secret@nats:4222").status().message(),
              Not(HasSubstr("secret")));
}

TEST(BackendsUrlTest, SaysWhoOpensWhatIsOnAServer) {
  const absl::Status status = OpenSyncStore("nats://localhost:4222").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("Backends"));
}

}  // namespace

}  // namespace muster::backend
