// SPDX-License-Identifier: Apache-2.0

// The fixture for tests of the queue service: a store, and an initiator that serves it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/bus/local/local_buses.h"
#include "muster/item/redrive.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "muster/report/report_client.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "services/queue-admin/queue_service.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator {

// Queue "acme/work" of a RocksDB store, which an initiator serves on loopback, with a ledger and a
// report for what is redriven.
class QueueServiceTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBatch = 7;
  // Even the slowest machine makes any call in less time.
  static constexpr absl::Duration kLong = absl::Minutes(2);

  QueueServiceTest() {
    queue::rocksdb::Options options;
    options.clock = &clock_;
    queues_ = OrDie(queue::rocksdb::RocksDbQueueStore::Open(dir_ / "queue", options));
    ledger_ = OrDie(ledger::rocksdb::RocksDbBatchLedger::Open(dir_ / "ledger", {}));
    report_ = OrDie(report::sqlite::OpenSqliteReport(dir_ / "report.db", {.clock = &clock_}));
    report_client_ = std::make_unique<report::LocalReportClient>(report_.get());
    reopener_ = std::make_unique<item::LedgerBatchReopener>(ledger_.get(), report_client_.get());
    service_ = std::make_unique<queue_admin::QueueService>(queues_.get(), reopener_.get(), &sync_,
                                                           &bus_, "initiator-1", &clock_);
    rpc::ServerOptions listening;
    listening.addresses = {"localhost:0"};
    server_ = OrDie(
        rpc::Server::Start(listening, {{v1::QueueService::service_full_name(), service_.get()}}));
    rpc::ChannelOptions impatient;
    impatient.retry_unavailable = false;
    stub_ =
        v1::QueueService::NewStub(OrDie(rpc::OpenChannel(server_->addresses().front(), impatient)));
    EXPECT_TRUE(queues_->CreateQueue(id_, {{"owner", "ann"}}).ok());
  }

  template <typename T>
  static T OrDie(absl::StatusOr<T> result) {
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }

  template <typename Method, typename Request, typename Response>
  absl::Status Call(Method method, const Request& request, Response* response) {
    rpc::CallContext context(kLong);
    return rpc::FromGrpc((stub_.get()->*method)(&context, request, response));
  }

  // Returns a request that names "acme/work".
  template <typename Request>
  static Request About(const std::string& name = "work") {
    Request request;
    request.mutable_queue()->set_account("acme");
    request.mutable_queue()->set_name(name);
    return request;
  }

  // Returns the message's id.
  std::string Put(const std::string& body) {
    std::vector<queue::NewMessage> messages(1);
    messages[0].body = body;
    return OrDie(queues_->Put(id_, messages)).front().message_id;
  }
  std::string GiveUp(const std::string& body, const std::string& reason = "it hung") {
    const std::string message_id = Put(body);
    const auto messages = OrDie(queues_->Receive(id_, {1, absl::Seconds(30)}));
    EXPECT_THAT(messages, ::testing::SizeIs(1));
    const queue::Cause cause{reason, 3, "worker-1", {}};
    EXPECT_TRUE(
        queues_
            ->DeadLetter(id_, std::vector<queue::DeadLetterRequest>{{messages[0].receipt, cause}})
            ->front()
            .ok());
    return message_id;
  }

  std::vector<std::string> ListAll(const std::string& prefix, int page_size, int* pages) {
    std::vector<std::string> names;
    v1::ListQueuesRequest request;
    request.set_account("acme");
    request.set_prefix(prefix);
    request.set_page_size(page_size);
    do {
      v1::ListQueuesResponse response;
      EXPECT_EQ(Call(&Stub::ListQueues, request, &response), absl::OkStatus());
      for (const v1::QueueSummary& queue : response.queues()) {
        names.push_back(queue.queue().name());
      }
      request.set_page_token(response.next_page_token());
      ++*pages;
    } while (!request.page_token().empty());
    return names;
  }

  absl::StatusOr<v1::ListPoisonResponse> ListPoison(int max, const std::string& after = "",
                                                    int max_body_bytes = 0) {
    auto request = About<v1::ListPoisonRequest>();
    request.set_max_messages(max);
    request.set_after_message_id(after);
    request.set_max_body_bytes(max_body_bytes);
    v1::ListPoisonResponse response;
    const absl::Status listed = Call(&Stub::ListPoison, request, &response);
    if (!listed.ok()) return listed;
    return response;
  }
  absl::StatusOr<v1::PeekMessagesResponse> Peek(int max, int max_body_bytes = 0) {
    auto request = About<v1::PeekMessagesRequest>();
    request.set_max_messages(max);
    request.set_max_body_bytes(max_body_bytes);
    v1::PeekMessagesResponse response;
    const absl::Status peeked = Call(&Stub::PeekMessages, request, &response);
    if (!peeked.ok()) return peeked;
    return response;
  }
  absl::StatusOr<int64_t> Redrive(const std::vector<std::string>& messages, int64_t max) {
    auto request = About<v1::RedriveRequest>();
    request.mutable_message_ids()->Add(messages.begin(), messages.end());
    request.set_max_messages(max);
    v1::RedriveResponse response;
    const absl::Status redriven = Call(&Stub::Redrive, request, &response);
    if (!redriven.ok()) return redriven;
    return response.redriven();
  }

  // Completes batch 7, which has two items; item 1 was given up.
  void CompleteBatch();
  // Returns the body of item `index` of the batch.
  std::string ItemBody(uint32_t index);

  // Returns the fields that a refusal names.
  static std::vector<std::string> Fields(const absl::Status& status) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    std::vector<std::string> fields;
    for (const rpc::FieldViolation& violation : rpc::Violations(status)) {
      fields.push_back(violation.field);
    }
    return fields;
  }

  using Stub = v1::QueueService::Stub;

  const queue::QueueId id_ = {"acme", "work"};
  base::FakeClock clock_;
  const os::TempDir dir_;
  std::unique_ptr<queue::QueueStore> queues_;
  std::unique_ptr<ledger::BatchLedger> ledger_;
  std::unique_ptr<report::ReportStore> report_;
  std::unique_ptr<report::LocalReportClient> report_client_;
  std::unique_ptr<item::LedgerBatchReopener> reopener_;
  sync::testing::MemorySyncStore sync_;
  bus::local::LocalTriggerBus bus_;
  std::unique_ptr<queue_admin::QueueService> service_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<Stub> stub_;
};

}  // namespace muster::initiator
