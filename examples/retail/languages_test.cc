// The two retail handlers, C++ and Python, give the same results for the same lines.
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "examples/retail/handler.h"
#include "gtest/gtest.h"
#include "muster/handler/command/command_handler.h"
#include "muster/handler/handler.h"
#include "muster/handler/sample_item.h"
#include "tests/fakes/base/test_seed.h"

namespace retail {
namespace {

using muster::handler::GroupSchema;
using muster::handler::Handler;
using muster::handler::HandlerRegistry;
using muster::handler::JobSchema;
using muster::handler::MeasureSchema;
using muster::handler::Outcome;
using muster::handler::Results;
using muster::handler::SampleItem;
using Line = std::vector<std::string>;

std::vector<MeasureSchema> Measures() {
  return {{"revenue", MeasureSchema::Type::kDecimal, 3},
          {"units", MeasureSchema::Type::kInt, 0},
          {"transactions", MeasureSchema::Type::kInt, 0}};
}

class LanguagesTest : public testing::Test {
 protected:
  LanguagesTest() {
    HandlerRegistry registry;
    RegisterRetail(registry);
    cpp_ = *(*registry.Find("retail"))->factory(schema_);
    muster::handler::command::CommandOptions options;
    options.argv = {"python3", "bill.py"};
    options.working_dir = RETAIL_FOLDER;
    options.deadline = absl::Minutes(5);
    python_ = *muster::handler::command::CommandHandlerFactory(options)(schema_);
  }

  // Returns all results of `handler` for the lines, as text.
  std::vector<std::string> Bill(Handler& handler, const std::vector<Line>& lines) {
    const SampleItem item(lines);
    Results results(&schema_, item.size());
    const Outcome outcome = handler.Process(item.get(), results);
    EXPECT_EQ(outcome.kind, Outcome::Kind::kOk) << outcome.why;
    EXPECT_TRUE(results.Verdict().ok()) << results.Verdict();
    std::vector<std::string> said{absl::StrCat("counted ", results.counted())};
    for (const auto& rejection : results.rejections()) {
      said.push_back(absl::StrCat(rejection.line, " ", rejection.reason));
    }
    for (const auto& partial : results.TakePartials()) {
      for (const auto& row : partial.rows) {
        said.push_back(absl::StrCat(partial.group, " ", absl::StrJoin(row.keys, "|")));
        for (const auto& m : row.measures) absl::StrAppend(&said.back(), " ", m.ToString());
      }
    }
    return said;
  }

  void ExpectSame(const std::vector<Line>& lines) {
    EXPECT_EQ(Bill(*python_, lines), Bill(*cpp_, lines));
  }

  const JobSchema schema_{"retail",
                          "r1",
                          {"quantity", "price", "date", "customer", "country"},
                          {GroupSchema{"by_country_month", {"country", "month"}, Measures()},
                           GroupSchema{"by_customer", {"customer"}, Measures()}}};
  std::unique_ptr<Handler> cpp_;
  std::unique_ptr<Handler> python_;
};

TEST_F(LanguagesTest, AgreeOnEachAwkwardLine) {
  const std::string date = "2010-12-01 08:26:00";
  const std::string nines(38, '9');
  std::vector<Line> lines;
  for (const std::string& number : {std::string(""),
                                    std::string("0"),
                                    std::string("-0"),
                                    std::string("+7"),
                                    std::string("007"),
                                    std::string("1.5"),
                                    std::string(".5"),
                                    std::string("5."),
                                    std::string("1e3"),
                                    std::string(" 1"),
                                    std::string("1,000"),
                                    std::string("x"),
                                    std::string("-"),
                                    std::string("0.001"),
                                    std::string("0.0010"),
                                    std::string("0.0001"),
                                    std::string("٣"),
                                    std::string("9223372036854775807"),
                                    std::string("9223372036854775808"),
                                    std::string("-9223372036854775808"),
                                    std::string("-9223372036854775809"),
                                    nines,
                                    nines + "9",
                                    "000" + nines,
                                    "0." + std::string(18, '1'),
                                    "0." + std::string(19, '1')}) {
    lines.push_back({number, "1", date, number, "a"});
    lines.push_back({"3", number, date, number, "b"});
    lines.push_back({number, number, date, number, "c"});
  }
  for (const char* time : {"", "2010-12-01", "2010-02-29 00:00:00", "2012-02-29 00:00:00",
                           "0000-02-29 00:00:00", "2010-12-01T00:00:00", "2010-12-01 24:00:00"}) {
    lines.push_back({"1", "1", time, "é \"quoted\" \\ \t 😀", "d"});
  }
  for (const Line& line : lines) ExpectSame({line});
}

TEST_F(LanguagesTest, AgreeOnWhichLineOfManyOverflows) {
  const std::string date = "2010-12-01 08:26:00";
  ExpectSame({{"9223372036854775807", "0", date, "a", "EIRE"},
              {"1", "0", date, "b", "EIRE"},
              {"1", "0", date, "a", "France"},
              {"-1", "0", date, "a", "EIRE"},
              {"1", std::string(35, '9'), date, "c", "Spain"},
              {"1", "0.999", date, "c", "Spain"},
              {"1", "0.001", date, "c", "Spain"}});
}

TEST_F(LanguagesTest, AgreeOnManyLines) {
  const uint32_t seed = muster::base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  std::vector<Line> lines;
  for (int i = 0; i < 5000; ++i) {
    const int64_t mils = static_cast<int64_t>(random() % 100'000) - 1000;
    lines.push_back({absl::StrCat(static_cast<int64_t>(random() % 600) - 20),
                     absl::StrCat(mils < 0 ? "-" : "", std::abs(mils) / 100, ".",
                                  std::abs(mils) / 10 % 10, std::abs(mils) % 10),
                     absl::StrCat("2011-", random() % 14, "-1", random() % 10, " 08:26:00"),
                     random() % 4 == 0 ? "" : absl::StrCat(12346 + random() % 300, ".0"),
                     absl::StrCat("country ", random() % 38)});
    if (lines.back()[2].size() < 19) lines.back()[2].insert(5, "0");
  }
  ExpectSame(lines);
}

}  // namespace
}  // namespace retail
