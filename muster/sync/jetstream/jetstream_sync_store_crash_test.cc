// SPDX-License-Identifier: Apache-2.0

// The server is killed during writes, and started again.
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/sync/jetstream/jetstream_sync_store.h"
#include "muster/sync/unique_id_generator.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::sync::jetstream {
namespace {

// So that writers soon notice that the server is dead. On a busy machine a server that lives may
// take longer to make the bucket: then it is asked again.
std::unique_ptr<JetStreamSyncStore> OpenImpatient(nats::Connection* connection) {
  while (true) {
    auto store = JetStreamSyncStore::Open(connection, {.timeout = absl::Milliseconds(300)});
    if (!absl::IsUnavailable(store.status())) return std::move(store).value();
  }
}

// A store over its own connection, as another process would have it.
struct Client {
  explicit Client(const std::string& url)
      : connection(nats::Connection::Open(url, {}).value()),
        store(OpenImpatient(connection.get())) {}

  const std::unique_ptr<nats::Connection> connection;
  const std::unique_ptr<JetStreamSyncStore> store;
};

// Counts the results of the writers' calls. Thread-safe.
class Outcomes {
 public:
  void Add(const absl::Status& status) {
    base::MutexLock lock(&mu_);
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
    ++(status.ok() ? succeeded_ : failed_);
    changed_.NotifyAll();
  }
  void AwaitSuccesses(int more) { Await(&succeeded_, more); }
  void AwaitFailures(int more) { Await(&failed_, more); }
  void Stop() {
    base::MutexLock lock(&mu_);
    stopped_ = true;
  }
  bool stopped() const {
    base::MutexLock lock(&mu_);
    return stopped_;
  }

 private:
  void Await(const int* count, int more) {
    base::MutexLock lock(&mu_);
    const int enough = *count + more;
    while (*count < enough) changed_.Wait(&mu_);
  }

  mutable base::Mutex mu_;
  base::CondVar changed_;
  int succeeded_ = 0;
  int failed_ = 0;
  bool stopped_ = false;
};

class SyncServerKilledTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Kills the server while writers write, and lets it come back, twice.
  void KillTwice(Outcomes* outcomes) {
    for (int i = 0; i < 2; ++i) {
      outcomes->AwaitSuccesses(50);
      server_.Kill();
      outcomes->AwaitFailures(1);
      server_.Restart();
    }
    outcomes->AwaitSuccesses(50);
    outcomes->Stop();
  }

  nats::testing::NatsServer server_{GetParam()};
};

// Increments the counter. OK: the increment is stored.
absl::Status Increment(JetStreamSyncStore* store) {
  for (;;) {
    const auto record = store->Get("counter");
    if (!record.ok()) return record.status();
    int value = 0;
    if (record->version != sync::kAbsent) {
      EXPECT_TRUE(absl::SimpleAtoi(record->data, &value));
    }
    const auto written = store->TryWrite("counter", absl::StrCat(value + 1), record->version);
    if (!written.ok()) return written.status();
    if (*written) return absl::OkStatus();
  }
}

TEST_P(SyncServerKilledTest, NothingIsLostThatWasAcknowledged) {
  Outcomes outcomes;
  std::vector<int> counted(2), unknown(2);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < counted.size(); ++t) {
    threads.emplace_back([&, t] {
      Client client(server_.url());
      while (!outcomes.stopped()) {
        const absl::Status status = Increment(client.store.get());
        ++(status.ok() ? counted : unknown)[t];
        outcomes.Add(status);
      }
    });
  }
  KillTwice(&outcomes);
  for (std::thread& thread : threads) thread.join();
  int value = 0;
  ASSERT_TRUE(absl::SimpleAtoi(Client(server_.url()).store->Get("counter")->data, &value));
  EXPECT_GE(value, counted[0] + counted[1]);
  EXPECT_LE(value, counted[0] + counted[1] + unknown[0] + unknown[1]);
}

TEST_P(SyncServerKilledTest, NoIdIsGivenTwice) {
  Outcomes outcomes;
  Client one(server_.url()), two(server_.url());
  sync::UniqueIdGenerator generators[] = {{one.store.get(), "ids", {.range_size = 3}},
                                          {one.store.get(), "ids", {.range_size = 1}},
                                          {two.store.get(), "ids", {.range_size = 2}}};
  std::vector<std::vector<int64_t>> given(6);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < given.size(); ++t) {
    threads.emplace_back([&, t] {
      while (!outcomes.stopped()) {
        const auto id = generators[t % 3].NextId();
        if (absl::IsAborted(id.status())) continue;  // the others were faster
        if (id.ok()) given[t].push_back(*id);
        outcomes.Add(id.status());
      }
    });
  }
  KillTwice(&outcomes);
  for (std::thread& thread : threads) thread.join();
  std::set<int64_t> all;
  for (const auto& of_thread : given) {
    for (const int64_t id : of_thread) EXPECT_TRUE(all.insert(id).second) << id << " came twice";
  }
}

INSTANTIATE_TEST_SUITE_P(Servers, SyncServerKilledTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

}  // namespace
}  // namespace muster::sync::jetstream
