// SPDX-License-Identifier: Apache-2.0

// The fixture for tests of the item worker: a job, its items, and handlers that are lambdas.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/item_result.pb.h"
#include "services/processor/item_worker.h"

namespace muster::processor {

using handler::Outcome;
using handler::Results;
using listener::Settlement;

using Body = std::function<Outcome(const handler::WorkItem&, Results&)>;

class LambdaHandler final : public handler::Handler {
 public:
  explicit LambdaHandler(Body body) : body_(std::move(body)) {}
  Outcome Process(const handler::WorkItem& item, Results& results) override {
    return body_(item, results);
  }

 private:
  const Body body_;
};

// A blob store that is down until it is switched on.
class SomeBlobs final : public blob::BlobStore {
 public:
  void SwitchOn() { on_ = true; }

  absl::Status Put(absl::string_view name, absl::string_view data) override {
    if (!on_) return absl::UnavailableError("down");
    blobs_[std::string(name)] = std::string(data);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Get(absl::string_view name) override {
    if (!on_) return absl::UnavailableError("down");
    if (absl::Status valid = blob::ValidateBlobName(name); !valid.ok()) return valid;
    const auto blob = blobs_.find(std::string(name));
    if (blob == blobs_.end()) return absl::NotFoundError("no such blob");
    return blob->second;
  }
  absl::Status Delete(absl::string_view name) override {
    blobs_.erase(std::string(name));
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<blob::BlobScan>> Scan() override {
    return absl::UnimplementedError("nobody scans here");
  }

 private:
  bool on_ = false;
  std::map<std::string, std::string> blobs_;
};

// Notes which deliveries of a claim begin, and how each is settled.
class NotedClaim final : public listener::DeliveryContext {
 public:
  absl::Status Begin(listener::Delivery& delivery) override {
    begun_.push_back(delivery.slot);
    return absl::OkStatus();
  }
  void Settle(const listener::Delivery& delivery, Settlement settlement) override {
    settled_.emplace(delivery.slot, std::move(settlement));
  }
  std::stop_token stop_token(const listener::Delivery&) override { return {}; }
  std::stop_token stop_token() const override { return {}; }

  std::vector<size_t> begun_;             // slots
  std::map<size_t, Settlement> settled_;  // by slot
};

// A job of two columns, customer and amount, summed by customer.
class ItemWorkerTest : public ::testing::Test {
 protected:
  ItemWorkerTest() {
    job_.name = "sum";
    job_.revision = "r1";
    job_.input.columns = {{"customer", "customer"}, {"amount", "amount"}};
    job_.groups = {
        {"by_customer", {"customer"}, {{"amount", handler::MeasureSchema::Type::kDecimal, 2}}}};
    setup_.job = &job_;
    setup_.schema = job_.schema();
    setup_.handler_version = "7";
    setup_.instance = "worker-1";
    setup_.blobs = &blobs_;
  }

  // Counts every transaction; rejects amounts that are no numbers.
  static Outcome Sum(const handler::WorkItem& item, Results& results) {
    for (const handler::Transaction& t : item.transactions()) {
      const auto amount = base::Decimal::TryParse(t.fields()[1]);
      if (amount.has_value()) {
        results.Count(t, {{handler::Group{0}, {t.fields()[0]}, {*amount}}});
      } else {
        results.Reject(t, "amount: not a number");
      }
    }
    return Outcome::Ok();
  }

  queue::Message Item(const std::string& slice, uint32_t transactions, bool oversized = false) {
    item::BatchIdentity identity{3, "sum", "r1", "7", std::nullopt, positions_of_items_, 2};
    identity.job_revision = revision_of_items_;
    identity.handler_version = version_of_items_;
    item::WorkItemEncoder encoder(identity, 1 << 20, &blobs_, carriage_of_items_);
    ledger::ItemBoundary item;
    item.length = slice.size();
    item.first_line = 10;
    item.transactions = transactions;
    item.content = base::Fingerprint(slice);
    item.oversized = oversized;
    queue::Message message;
    message.message_id = "m";
    message.body = *encoder.Encode(4, item, slice);
    return message;
  }

  static Attempt AttemptOf(int number) {
    Attempt attempt;
    attempt.number = number;
    return attempt;
  }

  // the last of three attempts
  Settlement WorkLast(const queue::Message& message, Body body) {
    ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(std::move(body)));
    Attempt attempt = AttemptOf(3);
    attempt.last = true;
    return worker.Work(message, attempt);
  }

  Settlement Work(const queue::Message& message, Body body = Sum, int attempt = 2) {
    ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(std::move(body)));
    return worker.Work(message, AttemptOf(attempt));
  }

  static v1::ItemResult ResultOf(const Settlement& settlement) {
    v1::ItemResult result;
    EXPECT_EQ(settlement.kind, Settlement::Kind::kOk) << settlement.why;
    EXPECT_THAT(settlement.outputs, ::testing::SizeIs(1));
    if (!settlement.outputs.empty()) result.ParseFromString(settlement.outputs.front().body);
    return result;
  }

  // Returns the amount in the only row of a result, which must be that of `customer`.
  static std::string AmountOf(const Settlement& settlement, const std::string& customer) {
    const v1::ItemResult result = ResultOf(settlement);
    if (result.aggregated().groups_size() != 1) return "no row";
    const v1::PartialRow& row = result.aggregated().groups(0).rows(0);
    EXPECT_EQ(row.keys(0), customer);
    return row.measures(0);
  }

  // Has one revision beside the job's own: "r0", whose first column is the amount.
  class Revisions final : public RevisionSource {
   public:
    explicit Revisions(const ItemWorkerTest* test) : test_(test) {}

    absl::StatusOr<std::shared_ptr<const Revision>> Find(const std::string& revision) override {
      ++asked_;
      if (revision != "r0") return absl::NotFoundError("never heard of it");
      const auto found = std::make_shared<Revision>();
      found->job = test_->job_;
      found->job.revision = "r0";
      std::swap(found->job.input.columns[0], found->job.input.columns[1]);
      found->setup.job = &found->job;
      found->setup.schema = found->job.schema();
      found->setup.handler_version = version_;
      found->setup.instance = test_->setup_.instance;
      found->setup.blobs = test_->setup_.blobs;
      found->handlers = [](const handler::JobSchema&) {
        return std::make_unique<LambdaHandler>([](const handler::WorkItem& item, Results& results) {
          for (const handler::Transaction& t : item.transactions()) {
            results.Count(
                t,
                {{handler::Group{0}, {t.fields()[1]}, {*base::Decimal::TryParse(t.fields()[0])}}});
          }
          return Outcome::Ok();
        });
      };
      return found;
    }

    int asked_ = 0;
    std::string version_ = "7";

   private:
    const ItemWorkerTest* const test_;
  };

  job::JobDefinition job_;
  SomeBlobs blobs_;
  WorkerSetup setup_;
  Revisions revisions_{this};
  std::string revision_of_items_ = "r1";
  std::string version_of_items_ = "7";
  item::Carriage carriage_of_items_ = item::Carriage::kInline;
  std::vector<int> positions_of_items_ = {0, 1};
};

}  // namespace muster::processor
