// SPDX-License-Identifier: Apache-2.0

// The fixture for tests of the report service: a report, and a controller that serves it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/os/temp_dir.h"
#include "muster/report/remote/remote_report_client.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "services/controller/report_service.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::controller {

// Batch 7 of job "shop", with groups "by_customer" and "by_day", in a report that a controller
// serves on loopback.
class ReportServiceTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBatch = 7;
  // Even the slowest machine makes any call in less time.
  static constexpr absl::Duration kLong = absl::Minutes(2);

  ReportServiceTest() {
    auto opened = report::sqlite::OpenSqliteReport(
        path(), {.clock = &clock_, .busy_wait = absl::ZeroDuration()});
    EXPECT_TRUE(opened.ok()) << opened.status();
    report_ = *std::move(opened);
    service_ = std::make_unique<ReportService>(report_.get(),
                                               [this](uint64_t batch) { return NoteCheck(batch); });
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    auto started =
        rpc::Server::Start(options, {{v1::ReportService::service_full_name(), service_.get()}});
    EXPECT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    rpc::ChannelOptions impatient;
    impatient.retry_unavailable = false;
    channel_ = *rpc::OpenChannel(server_->addresses().front(), impatient);
    stub_ = v1::ReportService::NewStub(channel_);
  }

  std::string path() const { return dir_ / "report.db"; }

  static report::BatchShape Shop(uint64_t batch = kBatch) {
    return {batch,
            "shop",
            "r1",
            {{"by_customer", {"customer"}, {{"revenue", false, 2}}},
             {"by_day", {"day"}, {{"revenue", false, 2}, {"units", true, 0}}}}};
  }

  // Returns an item of one transaction of 1.25 for the customer.
  static report::CountedItem Item(uint64_t index, const std::string& customer) {
    report::CountedItem item;
    item.batch = kBatch;
    item.index = index;
    item.transactions = item.aggregated = 1;
    item.content = base::Fingerprint(absl::StrCat("slice ", index));
    item.result = base::Fingerprint(customer);
    item.attempts = 1;
    item.handler_version = "v1";
    item.groups = {{"by_customer", {{{customer}, {*base::Decimal::Parse("1.25")}}}}};
    return item;
  }
  static report::CountedItem Dead(uint64_t index) {
    report::CountedItem item = Item(index, "nobody");
    item.outcome = report::ItemOutcome::kDeadLettered;
    item.aggregated = 0;
    item.cause = "it hung";
    item.groups.clear();
    return item;
  }

  void Register() {
    const absl::Status registered = report_->RegisterBatch(Shop()).status();
    ASSERT_TRUE(registered.ok()) << registered;
  }
  void Count(std::vector<report::CountedItem> items) {
    const auto counted = report_->Commit({"shop-out-0", 1, std::move(items)});
    ASSERT_TRUE(counted.ok()) << counted.status();
  }

  // Returns the lines that ReadReport visits: "[group]" and "key measure…".
  absl::StatusOr<std::vector<std::string>> Read(const report::remote::ReadRequest& request) {
    std::vector<std::string> lines;
    report::RowVisitor visitor;
    visitor.on_group = [&](const report::GroupShape& group) {
      lines.push_back(absl::StrCat("[", group.name, "]"));
      return absl::OkStatus();
    };
    visitor.on_row = [&](const report::GroupRow& row) {
      lines.push_back(absl::StrCat(row.keys[0], " ", row.measures[0].ToString()));
    };
    const absl::Status read = report::remote::ReadReport(channel_, request, visitor);
    if (!read.ok()) return read;
    return lines;
  }

  // The batches that the controller was asked to check.
  std::vector<uint64_t> checked() {
    base::MutexLock lock(&mu_);
    return checked_;
  }
  absl::Status NoteCheck(uint64_t batch) {
    base::MutexLock lock(&mu_);
    checked_.push_back(batch);
    return trouble_;
  }
  // What NoteCheck answers.
  void SetTrouble(const absl::Status& trouble) {
    base::MutexLock lock(&mu_);
    trouble_ = trouble;
  }

  // Returns the status of RegisterBatch.
  absl::Status Register(const v1::RegisterBatchRequest& request) {
    rpc::CallContext context(kLong);
    v1::RegisterBatchResponse response;
    return rpc::FromGrpc(stub_->RegisterBatch(&context, request, &response));
  }
  absl::StatusOr<v1::ListRejectionsResponse> ListRejections(
      const v1::ListRejectionsRequest& request) {
    rpc::CallContext context(kLong);
    v1::ListRejectionsResponse response;
    const absl::Status listed = rpc::FromGrpc(stub_->ListRejections(&context, request, &response));
    if (!listed.ok()) return listed;
    return response;
  }
  static std::vector<std::string> Fields(const absl::Status& status) {
    std::vector<std::string> fields;
    for (const rpc::FieldViolation& violation : rpc::Violations(status)) {
      fields.push_back(violation.field);
    }
    return fields;
  }

  base::FakeClock clock_;
  const os::TempDir dir_;
  std::unique_ptr<report::ReportStore> report_;
  base::Mutex mu_;
  std::vector<uint64_t> checked_ ABSL_GUARDED_BY(mu_);
  absl::Status trouble_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<ReportService> service_;
  std::unique_ptr<rpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ReportService::Stub> stub_;
};

}  // namespace muster::controller
