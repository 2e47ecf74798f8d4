// SPDX-License-Identifier: Apache-2.0

// OperationsFixture: the operations over an engine of their own, called as the gateway calls them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/protocol/reply.h"
#include "services/queue-gateway/protocol/xml_reader.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::queue_gateway::operations {

// Has another client come first, once: between what a write has read, and the write.
class RivalledStore final : public sync::OptimisticSyncStore {
 public:
  // `behind` is not owned.
  RivalledStore(sync::OptimisticSyncStore* behind, std::function<void()> rival)
      : behind_(behind), rival_(std::move(rival)) {}

  absl::StatusOr<sync::VersionedData> Get(absl::string_view key) override {
    return behind_->Get(key);
  }
  absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                uint64_t version) override {
    if (const auto rival = std::exchange(rival_, nullptr)) rival();
    return behind_->TryWrite(key, data, version);
  }
  absl::StatusOr<bool> TryDelete(absl::string_view key, uint64_t version) override {
    return behind_->TryDelete(key, version);
  }

 private:
  sync::OptimisticSyncStore* const behind_;  // not owned
  std::function<void()> rival_;
};

class OperationsFixture : public ::testing::Test {
 protected:
  OperationsFixture() {
    queue::rocksdb::Options options;
    options.clock = &clock_;
    auto opened = queue::rocksdb::RocksDbQueueStore::Open(folder_ / "queue", options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    queues_ = *std::move(opened);
    stores_ = {queues_.get(), &records_, &clock_};
  }

  // The reply to a request, that of an error too.
  http::Reply Ask(const std::string& method, const std::string& path, const std::string& body = "",
                  http::Headers headers = {}) {
    Call call;
    call.http.method = method;
    call.http.target = absl::StrCat("/acct", path);
    call.http.headers = std::move(headers);
    call.http.headers.emplace_back("Host", "localhost:1");
    call.http.body = body;
    call.target = *protocol::ParseTarget(call.http.target);
    if (is_secondary_) call.target.parts[0] = "acct-secondary";
    call.version = version_;
    call.resource = *protocol::FindResource("localhost:1", call.target,
                                            [](const std::string&) { return false; });
    const auto operation = protocol::FindOperation(method, call.resource, call.target);
    const Outcome outcome =
        operation.ok() ? RunOperation(*operation, call, stores_) : Outcome(operation.error());
    if (outcome.ok()) return *outcome;
    return protocol::ErrorReply(outcome.error(), {"id", version_, "", clock_.Now()});
  }

  // "201", or "404 QueueNotFound".
  static std::string Said(const http::Reply& reply) {
    const auto code = http::HeaderOf(reply.headers, "x-ms-error-code");
    return absl::StrCat(reply.status, code.has_value() ? " " : "", code.value_or(""));
  }
  std::string Status(const std::string& method, const std::string& path,
                     const std::string& body = "", http::Headers headers = {}) {
    return Said(Ask(method, path, body, std::move(headers)));
  }

  static std::string Header(const http::Reply& reply, absl::string_view name) {
    return std::string(http::HeaderOf(reply.headers, name).value_or("(none)"));
  }

  static protocol::XmlElement Document(const http::Reply& reply) {
    const auto root = protocol::ParseXml(reply.body);
    EXPECT_TRUE(root.ok()) << reply.body;
    return root.ok() ? *root : protocol::XmlElement();
  }

  void Create(const std::string& queue) { EXPECT_EQ(Status("PUT", "/" + queue), "201"); }

  static std::string Message(absl::string_view escaped_text) {
    return absl::StrCat("<QueueMessage><MessageText>", escaped_text,
                        "</MessageText></QueueMessage>");
  }

  struct Received {
    std::string id;
    std::string receipt;
    std::string text;
    std::string dequeue_count;
  };
  static std::vector<Received> MessagesOf(const http::Reply& reply) {
    std::vector<Received> messages;
    for (const protocol::XmlElement& message : Document(reply).children) {
      messages.push_back({message.TextOf("MessageId").value_or(""),
                          message.TextOf("PopReceipt").value_or(""),
                          message.TextOf("MessageText").value_or(""),
                          message.TextOf("DequeueCount").value_or("")});
    }
    return messages;
  }

  Received Put(const std::string& text, const std::string& query = "") {
    const http::Reply reply = Ask("POST", "/queue/messages" + query, Message(text));
    EXPECT_EQ(Said(reply), "201") << reply.body;
    return MessagesOf(reply).at(0);
  }
  std::vector<Received> Get(const std::string& query = "") {
    const http::Reply reply = Ask("GET", "/queue/messages" + query);
    EXPECT_EQ(Said(reply), "200") << reply.body;
    return MessagesOf(reply);
  }
  static std::vector<std::string> Texts(const std::vector<Received>& messages) {
    std::vector<std::string> texts;
    for (const Received& message : messages) texts.push_back(message.text);
    return texts;
  }
  static std::string Settle(const Received& message, const std::string& more = "") {
    return absl::StrCat("/queue/messages/", message.id, "?popreceipt=", message.receipt, more);
  }

  os::TempDir folder_;
  base::FakeClock clock_;
  std::unique_ptr<queue::rocksdb::RocksDbQueueStore> queues_;
  sync::testing::MemorySyncStore records_;
  Stores stores_ = {};
  std::string version_ = "2020-02-10";
  bool is_secondary_ = false;
};

}  // namespace muster::queue_gateway::operations
