// SPDX-License-Identifier: Apache-2.0
#include "services/controller/report_service.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "muster/report/remote/remote_report_client.h"
#include "muster/report/sqlite/connection.h"
#include "muster/rpc/server.h"
#include "services/controller/report_pages.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/controller/report_service_fixture.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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

// A reader of a report that is far larger than what its connection takes in, which has stopped
// reading after the first message.
class StalledReaderTest : public ReportServiceTest {
 protected:
  static constexpr uint64_t kRows = 4000;

  StalledReaderTest() {
    Register();
    std::vector<report::CountedItem> items;
    for (uint64_t i = 0; i < kRows; ++i) {
      items.push_back(Item(i, absl::StrCat(i, std::string(1000, 'x'))));
    }
    Count(std::move(items));
    // A window that does not grow: the server cannot send more than this without the reader.
    grpc::ChannelArguments small;
    small.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    small.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
    slow_stub_ = v1::ReportService::NewStub(grpc::CreateCustomChannel(
        server_->addresses().front(), grpc::InsecureChannelCredentials(), small));
    v1::GetReportRequest request;
    request.set_batch(kBatch);
    stream_ = slow_stub_->GetReport(&context_, request);
    EXPECT_TRUE(stream_->Read(&response_));
    EXPECT_TRUE(response_.has_schema());
  }

  // The status with which the stream ends; counts the rows that come until then.
  absl::Status ReadOn(uint64_t* rows) {
    while (stream_->Read(&response_)) *rows += response_.rows().rows_size();
    return rpc::FromGrpc(stream_->Finish());
  }

  rpc::CallContext context_{kLong};
  std::unique_ptr<v1::ReportService::Stub> slow_stub_;
  std::unique_ptr<grpc::ClientReader<v1::GetReportResponse>> stream_;
  v1::GetReportResponse response_;
};

// A reader in the midst of the report's database would keep its log from being cut, and commits
// would make it longer until the disk is full.
TEST_F(StalledReaderTest, KeepsNoLogAndGetsTheReportOfTheMomentAtWhichItAsked) {
  for (uint64_t batch = kBatch + 1; batch < kBatch + 20; ++batch) {
    ASSERT_TRUE(report_->RegisterBatch(Shop(batch)).ok());
  }
  Count({Item(kRows, "late")});
  const std::string log = path() + "-wal";
  ASSERT_GT(std::filesystem::file_size(log), 0u);
  const auto other = report::sqlite::Connection::Open(path(), report::sqlite::OpenMode::kWrite);
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE((*other)->Execute("PRAGMA wal_checkpoint(TRUNCATE)").ok());
  EXPECT_EQ(std::filesystem::file_size(log), 0u) << "a reader is in the midst of it";
  uint64_t rows = 0;
  EXPECT_EQ(ReadOn(&rows), absl::OkStatus());
  EXPECT_EQ(rows, kRows);
}

TEST_F(StalledReaderTest, HoldsUpNoDrain) {
  server_->Drain(absl::Milliseconds(10));
  uint64_t rows = 0;
  EXPECT_FALSE(ReadOn(&rows).ok());
  EXPECT_LT(rows, kRows) << "the service had sent all, and waited for no reader";
}

TEST_F(ReportServiceTest, StopsWritingAfterAnError) {
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
  const absl::Status full = absl::ResourceExhaustedError("the disk is full");
  const auto write = [&](const v1::GetReportResponse&) {
    return ++writes < 2 ? absl::OkStatus() : full;
  };
  EXPECT_EQ(WriteReport(**reader, request, write), full);
  EXPECT_EQ(writes, 2);
}

// The log of a controller whose disk was full named no disk when all batches were new.
TEST_F(ReportServiceTest, TellsOnceInAWhileWhatKeepsBatchesFromBeingRegistered) {
  const base::LogCapture log;
  const auto other =
      report::sqlite::Connection::Open(path(), report::sqlite::OpenMode::kWrite).value();
  ASSERT_TRUE(other->Execute("BEGIN IMMEDIATE").ok());
  report::remote::RemoteReportClient client([this] { return server_->addresses(); }, {}, kLong);
  EXPECT_FALSE(client.RegisterBatch(Shop(8)).ok());
  EXPECT_FALSE(client.RegisterBatch(Shop(9)).ok());
  std::vector<std::string> told;
  for (const std::string& line : log.lines()) {
    if (line.find("cannot be registered") != line.npos) told.push_back(line);
  }
  EXPECT_THAT(told, ElementsAre(HasSubstr("batch=8 why=")));
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

TEST_F(ReportServiceTest, GoesOnBehindARejection) {
  Register();
  report::CountedItem item = Item(3, "ann");
  item.transactions = 3;
  item.rejected = 2;
  item.rejections = {{31, "no quantity"}, {32, "no price"}};
  Count({item});
  v1::ListRejectionsRequest request;
  request.set_batch(kBatch);
  request.set_max(1000);
  request.mutable_after()->set_item(3);
  EXPECT_THAT(ListRejections(request)->rejections(), SizeIs(2));
  request.mutable_after()->set_line(31);
  ASSERT_THAT(ListRejections(request)->rejections(), SizeIs(1));
  EXPECT_EQ(ListRejections(request)->rejections(0).line(), 32);
  request.mutable_after()->set_line(32);
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
  report::remote::RemoteReportClient report_client([this] { return server_->addresses(); }, {},
                                                   kLong);
  Register();
  EXPECT_THAT(Fields(report_client.UncountedItems(kBatch, 1, 0, 0).status()), ElementsAre("max"));
  EXPECT_THAT(Fields(report_client.ReopenDeadLettered(kBatch, std::vector<uint64_t>(4097))),
              ElementsAre("indexes"));
}

class OutputServiceTest : public ReportServiceTest {
 protected:
  void RegisterWithOutputs() {
    report::BatchShape shape = Shop();
    shape.outputs = {{"note", base::OutputColumn::Type::kText, 0},
                     {"total", base::OutputColumn::Type::kDecimal, 2}};
    const absl::Status registered = report_->RegisterBatch(shape).status();
    ASSERT_TRUE(registered.ok()) << registered;
  }
  // An item with `records` records of `bytes` in its line.
  static report::CountedItem Giving(uint64_t index, size_t records, size_t bytes) {
    report::CountedItem item = Item(index, "ann");
    item.outputs.emplace();
    for (size_t i = 0; i < records; ++i) {
      item.outputs->push_back({static_cast<int64_t>(index + 1),
                               {absl::StrCat(index, ".", i, std::string(bytes, 'x')), "1.50"}});
    }
    return item;
  }
  void CompleteItems(uint64_t items) {
    report::BatchFacts facts;
    facts.batch = kBatch;
    facts.job = "shop";
    facts.job_revision = "r1";
    facts.items = facts.transactions = items;
    facts.created = absl::FromUnixSeconds(1);
    const auto receipt = report_->Complete(facts);
    ASSERT_TRUE(receipt.ok()) << receipt.status();
  }
  absl::StatusOr<v1::GetOutputResponse> GetOutput(const std::string& page_token) {
    v1::GetOutputRequest request;
    request.set_batch(kBatch);
    request.set_page_token(page_token);
    rpc::CallContext context(kLong);
    v1::GetOutputResponse response;
    const absl::Status listed = rpc::FromGrpc(stub_->GetOutput(&context, request, &response));
    if (!listed.ok()) return listed;
    return response;
  }
};

TEST_F(OutputServiceTest, ListsTheRecordsOfACompleteBatchPageByPage) {
  RegisterWithOutputs();
  Count({Giving(1, 30, 60000), Giving(0, 2, 10), Giving(2, 0, 0), Giving(3, 1, 10)});
  CompleteItems(4);
  std::vector<std::string> notes;
  std::string token;
  int pages = 0;
  do {
    const auto page = GetOutput(token);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LT(page->ByteSizeLong(), size_t{3} << 20);
    ASSERT_THAT(page->columns(), SizeIs(2));
    EXPECT_EQ(page->columns(1).name(), "total");
    EXPECT_EQ(page->columns(1).scale(), 2);
    for (const v1::OutputRecord& record : page->records()) {
      notes.push_back(record.fields(0).substr(0, record.fields(0).find('x')));
    }
    token = page->next_page_token();
    ++pages;
  } while (!token.empty());
  std::vector<std::string> expected = {"0.0", "0.1"};
  for (int i = 0; i < 30; ++i) expected.push_back(absl::StrCat("1.", i));
  expected.push_back("3.0");
  EXPECT_THAT(notes, ElementsAreArray(expected));
  EXPECT_GE(pages, 2);
}

TEST_F(OutputServiceTest, AnswersOnePageWithoutRecordsWhereThereAreNone) {
  RegisterWithOutputs();
  Count({Giving(0, 0, 0)});
  CompleteItems(1);
  const auto page = GetOutput("");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->columns(), SizeIs(2));
  EXPECT_THAT(page->records(), IsEmpty());
  EXPECT_EQ(page->next_page_token(), "");
}

TEST_F(OutputServiceTest, SaysWhatABatchWithoutAWholeOutputLacks) {
  EXPECT_TRUE(absl::IsNotFound(GetOutput("").status()));
  RegisterWithOutputs();
  Count({Giving(0, 1, 1)});
  EXPECT_TRUE(absl::IsFailedPrecondition(GetOutput("").status())) << GetOutput("").status();
  CompleteItems(1);
  EXPECT_TRUE(GetOutput("").ok());
  EXPECT_THAT(Fields(GetOutput("1.2").status()), ElementsAre("page_token"));
  EXPECT_THAT(Fields(GetOutput("1.2.x").status()), ElementsAre("page_token"));
  EXPECT_TRUE(absl::IsAborted(GetOutput("2.0.0").status()));
}

TEST_F(OutputServiceTest, SaysThatTheJobOfABatchHasNoOutputs) {
  Register();
  Count({Item(0, "ann")});
  CompleteItems(1);
  EXPECT_TRUE(absl::IsNotFound(GetOutput("").status()));
}

TEST_F(OutputServiceTest, GivesNoOutputOfABatchThatARedriveHasOpened) {
  RegisterWithOutputs();
  Count({Giving(0, 1, 1), Dead(1)});
  CompleteItems(2);
  ASSERT_TRUE(GetOutput("").ok());
  ASSERT_TRUE(report_->ReopenDeadLettered(kBatch, {1}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(GetOutput("").status()));
  Count({Giving(1, 1, 1)});
  CompleteItems(2);
  EXPECT_THAT(GetOutput("")->records(), SizeIs(2));
  EXPECT_TRUE(absl::IsAborted(GetOutput("1.1.0").status()));
}

}  // namespace
}  // namespace muster::controller
