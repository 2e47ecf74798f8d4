// What holds when the process that puts is killed. Against each server that NatsServer::Programs
// names.
#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/blob/jetstream/orphans.h"
#include "tests/fakes/base/victim.h"
#include "tests/fakes/blob/jetstream/bucket_fixture.h"

namespace muster::blob::jetstream {
namespace {

constexpr size_t kFilledBytes = 2'000'000;

std::string BytesOfRound(int round) { return Bytes(kFilledBytes, static_cast<char>(round % 2)); }

// Puts the same blob, in two forms by turns, as long as it lives.
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
  // More than once: what the dead sent last may still be on its way.
  while (ChunkSubjects().size() > 1) {
    ASSERT_TRUE(RemoveOrphans(&jetstream_, "muster", absl::Now() + absl::Hours(1)).ok());
  }
  EXPECT_EQ(Open()->Get("b")->size(), kFilledBytes);
}

INSTANTIATE_TEST_SUITE_P(Servers, PutterKilledTest, EachServer(), &ServerName);

}  // namespace
}  // namespace muster::blob::jetstream
