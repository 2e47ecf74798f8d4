#include "services/controller/report_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fake_clock.h"
#include "muster/base/mutex.h"
#include "muster/base/temp_dir.h"
#include "muster/report_remote/remote_desk.h"
#include "muster/report_remote/remote_report.h"
#include "muster/report_sqlite/connection.h"
#include "muster/report_sqlite/sqlite_report_store.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "services/controller/report_pages.h"

namespace muster::controller {
namespace {

using report::CountingDesk;
using report::Progress;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// Batch 7 of job "shop", with groups "by_customer" and "by_day", in a report that a controller
// serves on loopback.
class ReportServiceTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBatch = 7;
  // Longer than any call takes on the slowest machine.
  static constexpr absl::Duration kLong = absl::Minutes(2);

  ReportServiceTest() {
    auto opened = report_sqlite::OpenSqliteReport(
        path(), {.clock = &clock_, .busy_wait = absl::ZeroDuration()});
    EXPECT_TRUE(opened.ok()) << opened.status();
    report_ = *std::move(opened);
    service_ = std::make_unique<ReportService>(report_.get(),
                                               [this](uint64_t batch) { NoteCheck(batch); });
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

  // An item of one transaction, in which the customer spends 1.25.
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

  // What ReadReport visits: "[group]" and "key measure…".
  absl::StatusOr<std::vector<std::string>> Read(const report_remote::ReadRequest& request) {
    std::vector<std::string> lines;
    report::RowVisitor visitor;
    visitor.on_group = [&](const report::GroupShape& group) {
      lines.push_back(absl::StrCat("[", group.name, "]"));
      return absl::OkStatus();
    };
    visitor.on_row = [&](const report::GroupRow& row) {
      lines.push_back(absl::StrCat(row.keys[0], " ", row.measures[0].ToString()));
    };
    const absl::Status read = report_remote::ReadReport(channel_, request, visitor);
    if (!read.ok()) return read;
    return lines;
  }

  // Batches that the controller was asked to look at.
  std::vector<uint64_t> checked() {
    base::MutexLock lock(&mu_);
    return checked_;
  }
  void NoteCheck(uint64_t batch) {
    base::MutexLock lock(&mu_);
    checked_.push_back(batch);
  }

  // What RegisterBatch answers.
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
  const base::TempDir dir_;
  std::unique_ptr<report::ReportStore> report_;
  base::Mutex mu_;
  std::vector<uint64_t> checked_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<ReportService> service_;
  std::unique_ptr<rpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ReportService::Stub> stub_;
};

// What an initiator is promised, whether the report is here or behind a server.
enum class Where { kHere, kThere };

class CountingDeskTest : public ReportServiceTest, public ::testing::WithParamInterface<Where> {
 protected:
  CountingDeskTest() {
    if (GetParam() == Where::kThere) {
      desk_ = std::make_unique<report_remote::RemoteDesk>(channel_, kLong);
    } else {
      desk_ = std::make_unique<report::StoreDesk>(report_.get(),
                                                  [this](uint64_t batch) { NoteCheck(batch); });
    }
  }

  std::unique_ptr<CountingDesk> desk_;
};

INSTANTIATE_TEST_SUITE_P(Desks, CountingDeskTest, ::testing::Values(Where::kHere, Where::kThere),
                         [](const auto& test) {
                           return test.param == Where::kHere ? "Here" : "There";
                         });

TEST_P(CountingDeskTest, RegistersABatchAndTellsWhereItStands) {
  const absl::StatusOr<Progress> first = desk_->RegisterBatch(Shop());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->job_revision, "r1");
  EXPECT_EQ(first->items(), 0);
  EXPECT_FALSE(first->first_counted.has_value());
  Count({Item(0, "ann"), Dead(1)});
  const absl::StatusOr<Progress> again = desk_->RegisterBatch(Shop());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->items_counted, 1);
  EXPECT_EQ(again->items_dead, 1);
  EXPECT_EQ(again->last_counted, clock_.Now());
  EXPECT_EQ(desk_->GetProgress(kBatch)->transactions, 2);
}

TEST_P(CountingDeskTest, KnowsTheHighestBatch) {
  EXPECT_EQ(*desk_->HighestBatch(), 0u);
  Register();
  report::BatchShape other = Shop();
  other.batch = kBatch + 1'000'000;
  ASSERT_TRUE(desk_->RegisterBatch(other).ok());
  EXPECT_EQ(*desk_->HighestBatch(), kBatch + 1'000'000);
}

TEST_P(CountingDeskTest, RefusesABatchThatIsKnownOtherwise) {
  Register();
  report::BatchShape other = Shop();
  other.job_revision = "r2";
  EXPECT_TRUE(absl::IsFailedPrecondition(desk_->RegisterBatch(other).status()));
}

TEST_P(CountingDeskTest, RefusesAGroupThatNoTableCanBeMadeOf) {
  report::BatchShape shape = Shop();
  shape.groups[1].measures[0].scale = 19;
  EXPECT_TRUE(absl::IsInvalidArgument(desk_->RegisterBatch(shape).status()));
}

TEST_P(CountingDeskTest, NamesWhatIsNotCounted) {
  Register();
  Count({Item(1, "ann"), Dead(3)});
  EXPECT_THAT(*desk_->UncountedItems(kBatch, 6, 0, 4096), ElementsAre(0, 2, 4, 5));
  EXPECT_THAT(*desk_->UncountedItems(kBatch, 6, 1, 2), ElementsAre(2, 4));
  EXPECT_THAT(*desk_->UncountedItems(kBatch, 6, 6, 2), IsEmpty());
}

TEST_P(CountingDeskTest, BoundsHowManyItemsAnAnswerHas) {
  Register();
  EXPECT_THAT(*desk_->UncountedItems(kBatch, 5000, 0, 4096), SizeIs(4096));
  for (const size_t max : {size_t{0}, size_t{4097}, size_t{1} << 40}) {
    EXPECT_TRUE(absl::IsInvalidArgument(desk_->UncountedItems(kBatch, 6, 0, max).status())) << max;
  }
}

TEST_P(CountingDeskTest, AsksTheControllerToLook) {
  Register();
  EXPECT_EQ(desk_->CheckCompletion(kBatch), absl::OkStatus());
  EXPECT_THAT(checked(), ElementsAre(kBatch));
}

TEST_P(CountingDeskTest, HandsOutTheReceiptThatWasIssued) {
  Register();
  EXPECT_TRUE(absl::IsNotFound(desk_->GetReceipt(kBatch).status()));
  Count({Item(0, "ann")});
  report::BatchFacts facts;
  facts.batch = kBatch;
  facts.job = "shop";
  facts.job_revision = "r1";
  facts.handler_version = "v1";
  facts.items = facts.transactions = 1;
  facts.created = clock_.Now();
  const absl::StatusOr<report::Receipt> issued = report_->Complete(facts);
  ASSERT_TRUE(issued.ok()) << issued.status();
  const absl::StatusOr<report::StoredReceipt> receipt = desk_->GetReceipt(kBatch);
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(receipt->text, issued->ToText());
  EXPECT_EQ(receipt->checksum, issued->Checksum());
  EXPECT_EQ(desk_->GetProgress(kBatch)->receipt_revision, 1);
}

TEST_P(CountingDeskTest, TalliesWhatIsCountedOfABatchThatIsNotComplete) {
  Register();
  EXPECT_EQ(desk_->GetTally(kBatch)->rows_sha256, report::EmptyTally(kBatch).rows_sha256);
  report::CountedItem newer = Item(3, "bob");
  newer.handler_version = "v2";
  Count({Item(0, "ann"), newer, Dead(5)});
  const absl::StatusOr<report::Tally> tally = desk_->GetTally(kBatch);
  ASSERT_TRUE(tally.ok()) << tally.status();
  EXPECT_EQ(tally->progress.aggregated, 2);
  EXPECT_EQ(tally->progress.items_dead, 1);
  EXPECT_THAT(tally->items_by_version, ElementsAre(Pair("v1", 2), Pair("v2", 1)));
}

// The digests are those that a receipt would have of the same rows.
TEST_P(CountingDeskTest, TalliesWithTheDigestsOfAReceipt) {
  Register();
  report::CountedItem picky = Item(0, "ann");
  picky.transactions = 2;
  picky.rejected = 1;
  picky.rejections = {{3, "no price"}};
  Count({picky, Item(1, "bob")});
  report::BatchFacts facts;
  facts.batch = kBatch;
  facts.job = "shop";
  facts.job_revision = "r1";
  facts.items = 2;
  facts.transactions = 3;
  const absl::StatusOr<report::Receipt> receipt = report_->Complete(facts);
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  const absl::StatusOr<report::Tally> tally = desk_->GetTally(kBatch);
  ASSERT_TRUE(tally.ok()) << tally.status();
  EXPECT_EQ(tally->items_sha256, receipt->items_sha256);
  EXPECT_EQ(tally->rows_sha256, receipt->rows_sha256);
  EXPECT_EQ(tally->rejections_sha256, receipt->rejections_sha256);
  EXPECT_NE(tally->rejections_sha256, report::EmptyTally(kBatch).rejections_sha256);
}

TEST_P(CountingDeskTest, TalliesNothingWhereTotalsAndRowsContradictEachOther) {
  Register();
  Count({Item(0, "ann"), Item(1, "bob")});
  auto shell = report_sqlite::Connection::Open(path(), report_sqlite::OpenMode::kWrite);
  ASSERT_TRUE((*shell)->Execute("DELETE FROM muster_item WHERE item = 1").ok());
  EXPECT_TRUE(absl::IsDataLoss(desk_->GetTally(kBatch).status()));
}

TEST_P(CountingDeskTest, GivesDeadLetteredItemsAnotherChance) {
  Register();
  Count({Item(0, "ann"), Dead(1), Dead(2)});
  EXPECT_EQ(desk_->ReopenDeadLettered(kBatch, {0, 1, 5}), absl::OkStatus());
  EXPECT_THAT(*desk_->UncountedItems(kBatch, 3, 0, 10), ElementsAre(1));
  EXPECT_TRUE(
      absl::IsInvalidArgument(desk_->ReopenDeadLettered(kBatch, std::vector<uint64_t>(4097, 2))));
}

TEST_P(CountingDeskTest, KnowsNothingOfABatchThatNobodyRegistered) {
  EXPECT_TRUE(absl::IsNotFound(desk_->GetProgress(kBatch).status()));
  EXPECT_TRUE(absl::IsNotFound(desk_->UncountedItems(kBatch, 1, 0, 1).status()));
  EXPECT_TRUE(absl::IsNotFound(desk_->GetReceipt(kBatch).status()));
  EXPECT_TRUE(absl::IsNotFound(desk_->GetTally(kBatch).status()));
  EXPECT_TRUE(absl::IsNotFound(desk_->ReopenDeadLettered(kBatch, {1})));
  // A controller that looked would find its report broken, and give up.
  EXPECT_TRUE(absl::IsNotFound(desk_->CheckCompletion(kBatch)));
  EXPECT_THAT(checked(), IsEmpty());
}

TEST_P(CountingDeskTest, IsUnavailableWhileSomebodyElseWritesToTheReport) {
  Register();
  Count({Dead(0)});
  auto shell = report_sqlite::Connection::Open(path(), report_sqlite::OpenMode::kWrite);
  ASSERT_TRUE((*shell)->Execute("BEGIN IMMEDIATE").ok());
  EXPECT_TRUE(absl::IsUnavailable(desk_->ReopenDeadLettered(kBatch, {0})));
  EXPECT_TRUE(desk_->GetProgress(kBatch).ok());
  ASSERT_TRUE((*shell)->Execute("ROLLBACK").ok());
  EXPECT_EQ(desk_->ReopenDeadLettered(kBatch, {0}), absl::OkStatus());
}

TEST_F(ReportServiceTest, StreamsTheRowsOfAGroupInOrder) {
  Register();
  Count({Item(0, "bob"), Item(1, "ann"), Item(2, "bob")});
  EXPECT_THAT(*Read({kBatch, "by_customer"}), ElementsAre("[by_customer]", "ann 1.25", "bob 2.50"));
}

TEST_F(ReportServiceTest, StreamsAllGroupsInTheJobsOrder) {
  Register();
  Count({Item(0, "ann")});
  EXPECT_THAT(*Read({kBatch, ""}), ElementsAre("[by_customer]", "ann 1.25", "[by_day]"));
}

TEST_F(ReportServiceTest, StreamsNoMoreRowsThanAreWanted) {
  Register();
  Count({Item(0, "ann"), Item(1, "bob")});
  EXPECT_THAT(*Read({kBatch, "by_customer", 1}), ElementsAre("[by_customer]", "ann 1.25"));
  const absl::Status negative = Read({kBatch, "by_customer", -1}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(negative));
  EXPECT_THAT(Fields(negative), ElementsAre("max_rows"));
}

TEST_F(ReportServiceTest, CutsALongReportIntoPages) {
  Register();
  std::vector<report::CountedItem> items;
  std::vector<std::string> expected = {"[by_customer]"};
  for (uint64_t i = 0; i < 3000; ++i) {
    const std::string customer = absl::StrCat(10000 + i, std::string(1000, 'x'));
    items.push_back(Item(i, customer));
    expected.push_back(absl::StrCat(customer, " 1.25"));
  }
  Count(std::move(items));
  v1::GetReportRequest request;
  request.set_batch(kBatch);
  request.set_group("by_customer");
  rpc::CallContext context(kLong);
  const auto stream = stub_->GetReport(&context, request);
  std::vector<size_t> pages;
  v1::GetReportResponse response;
  while (stream->Read(&response)) {
    if (response.has_rows()) pages.push_back(response.ByteSizeLong());
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_THAT(pages, SizeIs(3));
  EXPECT_THAT(pages, ::testing::Each(::testing::Lt((size_t{1} << 20) + 100)));
  EXPECT_THAT(*Read({kBatch, "by_customer"}), ElementsAreArray(expected));
}

TEST_F(ReportServiceTest, StopsWritingToAReaderThatHasLeft) {
  Register();
  std::vector<report::CountedItem> items;
  for (uint64_t i = 0; i < 3000; ++i) {
    items.push_back(Item(i, absl::StrCat(i, std::string(1000, 'x'))));
  }
  Count(std::move(items));
  v1::GetReportRequest request;
  request.set_batch(kBatch);
  int writes = 0;
  const auto reader = report_->Read();
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(absl::IsCancelled(WriteReport(
      **reader, request, [&writes](const v1::GetReportResponse&) { return ++writes < 2; })));
  EXPECT_EQ(writes, 2);
}

TEST_F(ReportServiceTest, NamesTheGroupsThatThereAre) {
  Register();
  EXPECT_EQ(Read({kBatch, "by_week"}).status(),
            absl::NotFoundError("batch 7 has no group 'by_week'; it has by_customer, by_day"));
  EXPECT_TRUE(absl::IsNotFound(Read({kBatch + 1, ""}).status()));
}

TEST_F(ReportServiceTest, ListsWhatWasRejected) {
  Register();
  report::CountedItem item = Item(3, "ann");
  item.transactions = 3;
  item.rejected = 2;
  item.rejections = {{31, "no quantity"}, {32, "no price"}};
  Count({item});
  v1::ListRejectionsRequest request;
  request.set_batch(kBatch);
  request.set_max(1000);
  const auto all = ListRejections(request);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_THAT(all->rejections(), SizeIs(2));
  EXPECT_EQ(all->rejections(0).item(), 3);
  EXPECT_EQ(all->rejections(0).line(), 31);
  EXPECT_EQ(all->rejections(0).reason(), "no quantity");
  request.set_max(1);
  request.set_offset(1);
  EXPECT_EQ(ListRejections(request)->rejections(0).line(), 32);
  request.set_offset(2);
  EXPECT_THAT(ListRejections(request)->rejections(), IsEmpty());
}

TEST_F(ReportServiceTest, RefusesAListOfRejectionsThatIsNone) {
  v1::ListRejectionsRequest request;
  request.set_batch(kBatch);
  for (const int max : {-1, 0, 1001}) {
    request.set_max(max);
    EXPECT_THAT(Fields(ListRejections(request).status()), ElementsAre("max")) << max;
  }
  request.set_max(1);
  EXPECT_TRUE(absl::IsNotFound(ListRejections(request).status()));
  request.set_offset(-1);
  EXPECT_THAT(Fields(ListRejections(request).status()), ElementsAre("offset"));
}

TEST_F(ReportServiceTest, NamesTheFieldThatIsWrong) {
  v1::RegisterBatchRequest request;
  EXPECT_THAT(Fields(Register(request)), ElementsAre("batch"));
  request.set_batch(uint64_t{1} << 63);
  request.mutable_schema()->set_job("shop");
  request.mutable_schema()->set_revision("r1");
  EXPECT_THAT(Fields(Register(request)), ElementsAre("batch"));
  request.set_batch(kBatch);
  request.mutable_schema()->clear_job();
  EXPECT_THAT(Fields(Register(request)), ElementsAre("schema.job"));
  request.mutable_schema()->set_job("shop");
  request.mutable_schema()->clear_revision();
  EXPECT_THAT(Fields(Register(request)), ElementsAre("schema.revision"));
  request.mutable_schema()->set_revision("r1");
  v1::GroupSchema* const group = request.mutable_schema()->add_groups();
  group->set_name("by_day");
  group->add_keys("day");
  group->add_measures()->set_name("units");
  const absl::Status typeless = Register(request);
  EXPECT_TRUE(absl::IsInvalidArgument(typeless));
  EXPECT_THAT(Fields(typeless), ElementsAre("schema.groups[0]"));
  group->mutable_measures(0)->set_type(v1::MEASURE_TYPE_INT);
  *request.mutable_schema()->add_groups() = *group;
  EXPECT_THAT(Fields(Register(request)), ElementsAre("schema.groups[1]"));
  request.mutable_schema()->mutable_groups()->RemoveLast();
  EXPECT_EQ(Register(request), absl::OkStatus());
}

TEST_F(ReportServiceTest, NamesTheNumberThatIsOutOfBounds) {
  report_remote::RemoteDesk desk(channel_, kLong);
  Register();
  EXPECT_THAT(Fields(desk.UncountedItems(kBatch, 1, 0, 0).status()), ElementsAre("max"));
  EXPECT_THAT(Fields(desk.ReopenDeadLettered(kBatch, std::vector<uint64_t>(4097))),
              ElementsAre("indexes"));
}

}  // namespace
}  // namespace muster::controller
