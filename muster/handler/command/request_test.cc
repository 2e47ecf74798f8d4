#include "muster/handler/command/request.h"

#include <string>

#include "gtest/gtest.h"
#include "muster/handler/sample_item.h"
#include "nlohmann/json.hpp"

namespace muster::handler::command {
namespace {

using handler::ItemContext;
using handler::JobSchema;
using handler::Results;
using handler::SampleItem;

class RequestTest : public testing::Test {
 protected:
  std::string Encode(const SampleItem& item) {
    Results results(&schema_, item.size());
    std::string line = EncodeRequest(schema_, item.get(), absl::Seconds(30), results);
    rejections_ = results.rejections();
    return line;
  }

  const JobSchema schema_{"retail", "r1", {"quantity", "customer"}, {}};
  std::vector<handler::Rejection> rejections_;
};

TEST_F(RequestTest, IsOneLineThatTellsTheItem) {
  ItemContext context;
  context.batch = 1;
  context.index = 7;
  context.attempt = 2;
  EXPECT_EQ(Encode(SampleItem({{"6", "17850.0"}, {"-1", ""}}, context)),
            R"({"muster":1,"job":"retail","item":"1/7","attempt":2,"deadline_ms":30000,)"
            R"("columns":["quantity","customer"],"transactions":[)"
            R"({"line":2,"fields":["6","17850.0"]},{"line":3,"fields":["-1",""]}]})"
            "\n");
}

TEST_F(RequestTest, NamesTheTraceOfTheItem) {
  ItemContext context;
  context.trace = {0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 1, ""};
  const auto parsed = [&] {
    return nlohmann::json::parse(Encode(SampleItem({{"6", "a"}}, context)), nullptr,
                                 /*allow_exceptions=*/false);
  };
  EXPECT_EQ(parsed()["traceparent"], "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  EXPECT_FALSE(parsed().contains("tracestate"));
  context.trace->state = R"(a="b\c")";
  EXPECT_EQ(parsed()["tracestate"], R"(a="b\c")");
}

TEST_F(RequestTest, CarriesAnyTextUnchanged) {
  std::string all;
  for (char c = 0; c < 127; ++c) all += c;
  all += "é€😀";
  const std::string line = Encode(SampleItem({{all, "\"\\\n\r\t"}}));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto parsed = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(parsed["transactions"][0]["fields"][0], all);
  EXPECT_EQ(parsed["transactions"][0]["fields"][1], "\"\\\n\r\t");
}

TEST_F(RequestTest, RejectsATransactionThatJsonCannotCarry) {
  const std::string line = Encode(SampleItem({{"1", "a"}, {"2", "\xff"}, {"3", "b"}}));
  const auto parsed = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  ASSERT_EQ(parsed["transactions"].size(), 2u);
  EXPECT_EQ(parsed["transactions"][1]["line"], 4);
  ASSERT_EQ(rejections_.size(), 1u);
  EXPECT_EQ(rejections_[0].line, 3);
  EXPECT_EQ(rejections_[0].reason, "customer: not UTF-8 text");
}

}  // namespace
}  // namespace muster::handler::command
