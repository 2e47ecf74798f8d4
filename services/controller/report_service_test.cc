#include "services/controller/report_service.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/report/remote/remote_report_client.h"
#include "muster/rpc/server.h"
#include "tests/fakes/controller/report_service_fixture.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
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

// The log of the report's database is cut only while no reader is in the midst of it.
TEST_F(ReportServiceTest, KeepsNoLogForAReaderThatStopsReading) {
  Register();
  for (uint64_t i = 0; i < 12'000; i += 3000) {
    std::vector<report::CountedItem> items;
    for (uint64_t j = i; j < i + 3000; ++j) {
      items.push_back(Item(j, absl::StrCat(j, std::string(1000, 'x'))));
    }
    Count(std::move(items));
  }
  v1::GetReportRequest request;
  request.set_batch(kBatch);
  rpc::CallContext context(kLong);
  const auto stream = stub_->GetReport(&context, request);
  v1::GetReportResponse response;
  ASSERT_TRUE(stream->Read(&response));
  const auto log_bytes = [this] { return std::filesystem::file_size(path() + "-wal"); };
  const uintmax_t before = log_bytes();
  for (uint64_t batch = kBatch + 1; batch < kBatch + 300; ++batch) {
    ASSERT_TRUE(report_->RegisterBatch(Shop(batch)).ok());
  }
  EXPECT_EQ(log_bytes(), before) << "its pages are used again";
  size_t rows = 0;
  while (stream->Read(&response)) rows += response.rows().rows_size();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(rows, 12'000) << "all of the moment at which the report was asked for";
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
  report::remote::RemoteReportClient report_client([this] { return server_->addresses(); }, {},
                                                   kLong);
  Register();
  EXPECT_THAT(Fields(report_client.UncountedItems(kBatch, 1, 0, 0).status()), ElementsAre("max"));
  EXPECT_THAT(Fields(report_client.ReopenDeadLettered(kBatch, std::vector<uint64_t>(4097))),
              ElementsAre("indexes"));
}

}  // namespace
}  // namespace muster::controller
