// SPDX-License-Identifier: Apache-2.0

// The process is killed during Puts. The tests run on each server that NatsServer::Programs names.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/blob/jetstream/jetstream_blob_store.h"
#include "tests/fakes/base/killable_process.h"
#include "tests/fakes/blob/jetstream/bucket_fixture.h"

namespace muster::blob::jetstream {

namespace {

constexpr size_t kFilledBytes = 2'000'000;

std::string BytesOfRound(int round) { return Bytes(kFilledBytes, static_cast<char>(round % 2)); }

// Puts the same blob, in two forms by turns, until it is killed.
const base::testing::RegisteredProcess putter("putter", [](const std::string& url) {
  const auto connection = nats::Connection::Open(url, {}).value();
  const auto store = JetStreamBlobStore::Open(connection.get()).value();
  for (int round = 0;; ++round) {
    if (store->Put("b", BytesOfRound(round)).ok()) base::testing::Send("put");
  }
});

using PutterKilledTest = BucketTest;

TEST_P(PutterKilledTest, LeavesAWholeBlobWhateverThePutHadComeTo) {
  for (int kill = 0; kill < 5; ++kill) {
    base::testing::KillableProcess process("putter", server_.url());
    for (int n = 0; n <= kill; ++n) ASSERT_EQ(process.Receive(), "put");
    ASSERT_TRUE(process.Kill());
    const auto read = Open()->Get("b");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == BytesOfRound(0) || *read == BytesOfRound(1)) << read->size() << " bytes";
  }
}

TEST_P(PutterKilledTest, WhatItLeftIsRemovedOnceItIsOld) {
  for (int kill = 0; kill < 3; ++kill) {
    base::testing::KillableProcess process("putter", server_.url());
    ASSERT_EQ(process.Receive(), "put");
    ASSERT_TRUE(process.Kill());
  }
  // Repeats, because the last chunks of the dead process may still be under way.
  while (ChunkSubjects().size() > 1) {
    ASSERT_TRUE(RemoveOrphans(&jetstream_, "muster", absl::Now() + absl::Hours(1)).ok());
  }
  EXPECT_EQ(Open()->Get("b")->size(), kFilledBytes);
}

INSTANTIATE_TEST_SUITE_P(Servers, PutterKilledTest, EachServer(), &ServerName);

}  // namespace

// The server is killed during Puts, and started again.

namespace {

constexpr absl::Duration kTimeout = absl::Milliseconds(500);
constexpr size_t kBlobBytes = 1 << 20;

// Puts one blob after the other until it is stopped, and records the results. Thread-safe.
class Putter {
 public:
  explicit Putter(JetStreamBlobStore* store) : store_(store), thread_([this] { Run(); }) {}
  ~Putter() { Stop(); }

  void AwaitPuts(size_t more) { Await(&put_, more); }
  void AwaitFailures(size_t more) { Await(&failed_, more); }
  void Stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
  }

  // Call these after Stop. The numbers of the blobs that were acknowledged, and of the other ones.
  const std::vector<int>& put() const { return put_; }
  const std::vector<int>& failed() const { return failed_; }

  static std::string NameOf(int number) { return absl::StrCat("b", number); }
  static std::string BytesOf(int number) { return Bytes(kBlobBytes, static_cast<char>(number)); }

 private:
  void Run() {
    for (int number = 0; !stopped_; ++number) {
      const absl::Status status = store_->Put(NameOf(number), BytesOf(number));
      EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
      base::MutexLock lock(&mu_);
      (status.ok() ? put_ : failed_).push_back(number);
      changed_.NotifyAll();
    }
  }
  void Await(const std::vector<int>* numbers, size_t more) {
    base::MutexLock lock(&mu_);
    const size_t enough = numbers->size() + more;
    while (numbers->size() < enough) changed_.Wait(&mu_);
  }

  JetStreamBlobStore* const store_;  // not owned
  std::atomic<bool> stopped_{false};
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<int> put_;
  std::vector<int> failed_;
  std::thread thread_;
};

using BlobServerKilledTest = BucketTest;

TEST_P(BlobServerKilledTest, EveryBlobIsThereThatWasAcknowledgedAndNoOtherIsInPieces) {
  const auto store = Open({.timeout = kTimeout});
  Putter writer(store.get());
  for (int i = 0; i < 2; ++i) {
    writer.AwaitPuts(5);
    server_.Kill();
    writer.AwaitFailures(1);
    server_.Restart();
  }
  writer.AwaitPuts(5);
  writer.Stop();
  const auto reader = Open();
  for (const int number : writer.put()) {
    const auto read = reader->Get(Putter::NameOf(number));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == Putter::BytesOf(number)) << number;
  }
  for (const int number : writer.failed()) {
    const auto read = reader->Get(Putter::NameOf(number));
    EXPECT_TRUE(absl::IsNotFound(read.status()) || *read == Putter::BytesOf(number)) << number;
  }
}

TEST_P(BlobServerKilledTest, CallsAreUnavailableMeanwhileAndWorkAfterwards) {
  const auto store = Open({.timeout = kTimeout});
  ASSERT_TRUE(store->Put("b", "body").ok());
  server_.Kill();
  EXPECT_TRUE(absl::IsUnavailable(store->Put("c", "body")));
  EXPECT_TRUE(absl::IsUnavailable(store->Get("b").status()));
  EXPECT_TRUE(absl::IsUnavailable(store->Delete("b")));
  server_.Restart();
  while (!connection_->Flush(absl::Seconds(1)).ok()) {
  }
  const auto after = Open();
  EXPECT_EQ(*after->Get("b"), "body");
  EXPECT_TRUE(after->Put("c", "new").ok());
  EXPECT_EQ(*after->Get("c"), "new");
}

INSTANTIATE_TEST_SUITE_P(Servers, BlobServerKilledTest, EachServer(), &ServerName);

}  // namespace

}  // namespace muster::blob::jetstream
