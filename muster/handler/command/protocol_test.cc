// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/protocol.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
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

using handler::JobSchema;
using handler::MeasureSchema;
using handler::Outcome;
using handler::Results;
using handler::SampleItem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

handler::ItemContext Item7OfBatch1() {
  handler::ItemContext context;
  context.batch = 1;
  context.index = 7;
  return context;
}

class AnswerTest : public testing::Test {
 protected:
  absl::StatusOr<Outcome> Decode(absl::string_view answer) {
    results_.emplace(&schema_, item_.size());
    return DecodeAnswer(answer, schema_, item_.get(), *results_);
  }

  static std::string RowsOf(absl::string_view rows) {
    return absl::StrCat(R"({"item":"1/7","outcome":"ok","groups":{"by_customer":[)", rows, "]}}");
  }

  // Decodes an answer with these rows of by_customer; returns the error.
  std::string WrongRow(absl::string_view row) { return Wrong(RowsOf(row)); }
  std::string Wrong(absl::string_view answer,
                    absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    const absl::StatusOr<Outcome> outcome = Decode(answer);
    if (outcome.ok()) return "nothing";
    EXPECT_EQ(outcome.status().code(), code);
    return std::string(outcome.status().message());
  }
  // Of a sound answer with a value that does not fit.
  std::string UnfitRow(absl::string_view row) {
    return Wrong(RowsOf(row), absl::StatusCode::kOutOfRange);
  }

  std::vector<std::string> Rows() {
    std::vector<std::string> shown;
    for (const handler::GroupPartial& partial : results_->TakePartials()) {
      for (const handler::PartialRow& row : partial.rows) {
        shown.push_back(absl::StrCat(partial.group, " ", absl::StrJoin(row.keys, "|")));
        for (const auto& m : row.measures) absl::StrAppend(&shown.back(), " ", m.ToString());
      }
    }
    return shown;
  }

  const JobSchema schema_{
      "retail",
      "r1",
      {"quantity"},
      {{"by_customer",
        {"customer"},
        {{"revenue", MeasureSchema::Type::kDecimal, 3}, {"units", MeasureSchema::Type::kInt, 0}}}}};
  const SampleItem item_{{{"1"}, {"2"}, {"3"}}, Item7OfBatch1()};
  std::optional<Results> results_;
};

TEST_F(AnswerTest, CountsEveryTransactionExceptTheRejected) {
  const auto outcome = Decode(R"({"item":"1/7","outcome":"ok",
      "groups":{"by_customer":[{"customer":"17850.0","revenue":"15.30","units":6}]},
      "rejected":[{"line":3,"reason":"quantity: not a whole number"}]})");
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->kind, Outcome::Kind::kOk);
  EXPECT_EQ(results_->counted(), 2);
  ASSERT_EQ(results_->rejections().size(), 1u);
  EXPECT_EQ(results_->rejections()[0].line, 3);
  EXPECT_EQ(results_->rejections()[0].reason, "quantity: not a whole number");
  EXPECT_THAT(Rows(), ElementsAre("by_customer 17850.0 15.300 6"));
}

TEST_F(AnswerTest, MayContributeToNothing) {
  ASSERT_TRUE(Decode(R"({"item":"1/7","outcome":"ok"})").ok());
  EXPECT_EQ(results_->counted(), 3);
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(AnswerTest, TakesWholeNumbersAndStrings) {
  ASSERT_TRUE(Decode(R"({"item":"1/7","outcome":"ok","groups":{"by_customer":[
      {"customer":"","revenue":15,"units":"-6"},
      {"customer":"é","revenue":"-0.125","units":-9223372036854775808},
      {"customer":"z","revenue":18446744073709551615,"units":9223372036854775807}]}})")
                  .ok());
  EXPECT_THAT(Rows(), ElementsAre("by_customer  15.000 -6",
                                  "by_customer z 18446744073709551615.000 9223372036854775807",
                                  "by_customer é -0.125 -9223372036854775808"));
}

TEST_F(AnswerTest, AddsUpRowsOfTheSameKeys) {
  ASSERT_TRUE(Decode(R"({"item":"1/7","outcome":"ok","groups":{"by_customer":[
      {"customer":"a","revenue":1,"units":1},{"customer":"a","revenue":"0.5","units":2}]}})")
                  .ok());
  EXPECT_THAT(Rows(), ElementsAre("by_customer a 1.500 3"));
}

// An answer may be megabytes long, and a stop does not interrupt its reading: the time for a row
// must not grow with the number of rows before it.
TEST_F(AnswerTest, ReadsAVeryLongListOfRows) {
  constexpr int kRows = 200000;
  std::string answer = R"({"item":"1/7","outcome":"ok","groups":{"by_customer":[)";
  for (int i = 0; i < kRows; ++i) {
    absl::StrAppend(&answer, i == 0 ? "" : ",", R"({"customer":"c)", i,
                    R"(","revenue":"1.5","units":1})");
  }
  ASSERT_TRUE(Decode(absl::StrCat(answer, "]}}")).ok());
  EXPECT_EQ(Rows().size(), static_cast<size_t>(kRows));
}

TEST_F(AnswerTest, MayAskForAnotherTime) {
  const auto retry = Decode(R"({"item":"1/7","outcome":"retry","after_ms":1500,"why":"no rates"})");
  ASSERT_TRUE(retry.ok()) << retry.status();
  EXPECT_EQ(retry->kind, Outcome::Kind::kRetry);
  EXPECT_EQ(retry->delay, absl::Milliseconds(1500));
  EXPECT_EQ(retry->why, "no rates");
  const auto defer = Decode(R"({"item":"1/7","outcome":"defer","why":"closed on Sundays"})");
  ASSERT_TRUE(defer.ok()) << defer.status();
  EXPECT_EQ(defer->kind, Outcome::Kind::kDefer);
  EXPECT_EQ(defer->delay, absl::ZeroDuration());
}

TEST_F(AnswerTest, MayGiveTheItemUp) {
  const auto dead = Decode(R"({"item":"1/7","outcome":"dead","why":"broken\nfor good"})");
  ASSERT_TRUE(dead.ok()) << dead.status();
  EXPECT_EQ(dead->kind, Outcome::Kind::kDead);
  EXPECT_EQ(dead->why, "broken?for good");
}

TEST_F(AnswerTest, RefusesWhatIsNoAnswer) {
  EXPECT_EQ(Wrong(""), "not JSON in UTF-8: byte 1, where it ends");
  EXPECT_EQ(Wrong("hello"), "not JSON in UTF-8: byte 1, at `hello`");
  EXPECT_EQ(Wrong("[]"), "the answer is no JSON object");
  EXPECT_EQ(Wrong("{}"), "has no member \"item\"");
  EXPECT_EQ(Wrong(R"({"item":7,"outcome":"ok"})"), "\"item\" is no string");
  EXPECT_EQ(Wrong(R"({"item":"1/8","outcome":"ok"})"), "it is about item '1/8', not 1/7");
  EXPECT_EQ(Wrong(R"({"item":"1/7"})"), "has no member \"outcome\"");
  EXPECT_EQ(Wrong(R"({"item":"1/7","outcome":"fine"})"),
            "outcome: 'fine' is not one of ok, retry, defer, dead");
}

TEST_F(AnswerTest, RefusesMembersThatItDoesNotKnowOrHasTwice) {
  EXPECT_EQ(Wrong(R"({"item":"1/7","outcome":"ok","group":{}})"),
            "has an unknown member \"group\"");
  EXPECT_EQ(Wrong(R"({"item":"1/7","outcome":"ok","why":"x"})"), "has an unknown member \"why\"");
  EXPECT_EQ(Wrong(R"({"item":"1/7","outcome":"dead","why":"x","after_ms":1})"),
            "has an unknown member \"after_ms\"");
  EXPECT_EQ(Wrong(R"({"item":"1/7","outcome":"ok","outcome":"ok"})"),
            "member \"outcome\" is there twice");
}

TEST_F(AnswerTest, RefusesGroupsThatTheJobDoesNotHave) {
  EXPECT_EQ(Wrong(R"({"item":"1/7","outcome":"ok","groups":[]})"), "groups: is no JSON object");
  EXPECT_THAT(Wrong(R"({"item":"1/7","outcome":"ok","groups":{"x":[]}})"),
              HasSubstr("has no group 'x'; it has: by_"));
  EXPECT_EQ(Wrong(R"({"item":"1/7","outcome":"ok","groups":{"by_customer":{}}})"),
            "groups.by_customer: is no JSON array");
}

TEST_F(AnswerTest, RefusesRowsOfAnotherShape) {
  EXPECT_EQ(WrongRow("7"), "groups.by_customer[0]: is no JSON object");
  EXPECT_EQ(WrongRow(R"({"revenue":1,"units":1})"),
            "groups.by_customer[0]: has no member \"customer\"");
  EXPECT_EQ(WrongRow(R"({"customer":7,"revenue":1,"units":1})"),
            "groups.by_customer[0]: \"customer\" is no string");
  EXPECT_EQ(WrongRow(R"({"customer":"a","revenue":1})"),
            "groups.by_customer[0]: has no member \"units\"");
  EXPECT_EQ(WrongRow(R"({"customer":"a","revenue":1,"units":1,"x":1})"),
            "groups.by_customer[0]: has an unknown member \"x\"");
  EXPECT_EQ(WrongRow(R"({"customer":"a","revenue":1,"units":1},{"customer":"b"})"),
            "groups.by_customer[1]: has no member \"revenue\"");
}

TEST_F(AnswerTest, RefusesNumbersThatMayHaveLostPrecision) {
  for (const char* number : {"15.30", "1e3", "99999999999999999999999"}) {
    EXPECT_THAT(WrongRow(absl::StrCat(R"({"customer":"a","revenue":)", number, R"(,"units":1})")),
                HasSubstr("write it as a string"))
        << number;
  }
  EXPECT_EQ(WrongRow(R"({"customer":"a","revenue":null,"units":1})"),
            "groups.by_customer[0]: revenue: is no number and no string");
  EXPECT_EQ(UnfitRow(R"({"customer":"a","revenue":"NaN","units":1})"),
            "groups.by_customer[0]: revenue: 'NaN' is not a decimal number");
}

TEST_F(AnswerTest, ShowsWhatStandsAroundThePlaceThatIsNoJson) {
  EXPECT_EQ(Wrong(R"({"item":"1/7","outcome":"ok"} {})"),
            R"(not JSON in UTF-8: byte 31, at `{}` behind `…":"1/7","outcome":"ok"} `)");
  EXPECT_EQ(Wrong("{\"item\":\"1/7\",\"outcome\":\"ok\xff\"}"),
            R"(not JSON in UTF-8: byte 28, at `?"}` behind `…tem":"1/7","outcome":"ok`)");
  EXPECT_EQ(Wrong(R"({"item":"1/7")"),
            R"(not JSON in UTF-8: byte 14, where it ends behind `{"item":"1/7"`)");
  EXPECT_EQ(Wrong(R"({"item":"1/7",})"),
            R"(not JSON in UTF-8: byte 15, at `}` behind `{"item":"1/7",`)");
}

TEST_F(AnswerTest, CutsWhatStandsAroundAWrongPlaceWithinNoCharacter) {
  const std::string umlauts = "äääääääääääääääää";
  EXPECT_EQ(Wrong(absl::StrCat("{\"", umlauts, "a\":x", umlauts)),
            "not JSON in UTF-8: byte 40, at `xäääääääääää…` behind `…ääääääääääa\":`");
}

// print(answer) instead of print(json.dumps(answer)).
TEST_F(AnswerTest, SaysWhatToWriteInsteadOfPythonsOwnNotation) {
  EXPECT_EQ(
      Wrong("{'item': '1/7', 'outcome': 'ok'}"),
      "not JSON in UTF-8: byte 2, at `'item': '1/7', 'outcome'…` behind `{`, a single quote, as "
      "when Python prints a dict: print json.dumps(answer)");
  EXPECT_THAT(Wrong(R"({"item":"1/7","outcome":None})"), HasSubstr("it has true, false and null"));
  EXPECT_THAT(WrongRow(R"({"customer":"a","revenue":NaN,"units":1})"), HasSubstr("no NaN"));
}

TEST_F(AnswerTest, TakesAMarkOfUtf8BeforeTheAnswer) {
  EXPECT_EQ(Wrong("\xEF\xBB\xBF{\"item\":\"1/7\",\"outcome\":\"ok\"}"), "nothing");
}

TEST_F(AnswerTest, ReadsDecimalsWithAnExponent) {
  EXPECT_EQ(WrongRow(R"({"customer":"a","revenue":"0E-8","units":"1E+1"},
                        {"customer":"b","revenue":"25e-1","units":1})"),
            "nothing");
}

TEST_F(AnswerTest, RefusesNumbersThatTheMeasureCannotHold) {
  EXPECT_EQ(UnfitRow(R"({"customer":"a","revenue":"0.0001","units":1})"),
            "groups.by_customer[0]: revenue: 0.0001 needs more than 3 decimals");
  EXPECT_EQ(UnfitRow(R"({"customer":"a","revenue":1,"units":"1.5"})"),
            "groups.by_customer[0]: units: 1.5 is not a whole number");
  EXPECT_EQ(UnfitRow(R"({"customer":"a","revenue":1,"units":9223372036854775808})"),
            "groups.by_customer[0]: units: overflows");
  EXPECT_EQ(UnfitRow(R"({"customer":"a","revenue":1,"units":9223372036854775807},
                        {"customer":"a","revenue":1,"units":1})"),
            "groups.by_customer[1]: units: overflows");
}

TEST_F(AnswerTest, RefusesRejectionsOfLinesThatAreNotOpen) {
  const auto wrong = [this](absl::string_view rejected) {
    return Wrong(absl::StrCat(R"({"item":"1/7","outcome":"ok","rejected":)", rejected, "}"));
  };
  EXPECT_EQ(wrong("7"), "rejected: is no JSON array");
  EXPECT_EQ(wrong("[7]"), "rejected[0]: is no JSON object");
  EXPECT_EQ(wrong(R"([{"line":2}])"), "rejected[0]: has no member \"reason\"");
  EXPECT_EQ(wrong(R"([{"line":"2","reason":"x"}])"), "rejected[0]: line: is no whole number");
  EXPECT_EQ(wrong(R"([{"line":2,"reason":"x","y":1}])"),
            "rejected[0]: has an unknown member \"y\"");
  EXPECT_EQ(wrong(R"([{"line":1,"reason":"x"}])"),
            "rejected[0]: line: 1 is no line of the item, or was rejected before");
  EXPECT_EQ(wrong(R"([{"line":2,"reason":"x"},{"line":2,"reason":"x"}])"),
            "rejected[1]: line: 2 is no line of the item, or was rejected before");
}

TEST_F(AnswerTest, RefusesToWaitForeverOrWithoutAReason) {
  EXPECT_EQ(Wrong(R"({"item":"1/7","outcome":"retry"})"), "has no member \"why\"");
  EXPECT_EQ(Wrong(R"({"item":"1/7","outcome":"dead"})"), "has no member \"why\"");
  for (const char* after : {"-1", "1.5", "\"1\"", "604800001", "18446744073709551615"}) {
    EXPECT_EQ(
        Wrong(absl::StrCat(R"({"item":"1/7","outcome":"defer","why":"x","after_ms":)", after, "}")),
        "after_ms: is no whole number from 0 to 604800000");
  }
}

TEST_F(AnswerTest, RefusesDeepNestingBeforeItCostsMemory) {
  EXPECT_EQ(Wrong(std::string(1 << 20, '[')), "brackets nest too deeply");
  EXPECT_EQ(Wrong(R"({"item":"1/7","outcome":"ok","groups":{"by_customer":[{"customer":[]}]}})"),
            "brackets nest too deeply");
  EXPECT_EQ(Wrong(R"({"item":"[[[[[\"{{{{{","outcome":"ok"})"),
            "it is about item '[[[[[\"{{{{{', not 1/7");
}

class OutputAnswerTest : public testing::Test {
 protected:
  using Type = base::OutputColumn::Type;

  absl::StatusOr<Outcome> Decode(absl::string_view outputs) {
    results_.emplace(&schema_, item_.size());
    return DecodeAnswer(
        absl::StrCat(R"({"item":"1/7","outcome":"ok","rejected":[{"line":)", item_[1].line(),
                     R"(,"reason":"bad"}],"outputs":)", outputs, "}"),
        schema_, item_.get(), *results_);
  }
  // An answer with this record of the first line; returns the error.
  absl::Status RecordStatus(absl::string_view record) {
    return Decode(absl::StrCat("[{\"line\":", item_[0].line(), ",\"record\":", record, "}]"))
        .status();
  }
  std::string WrongRecord(absl::string_view record) {
    const absl::Status status = RecordStatus(record);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }

  const JobSchema schema_{
      "retail",
      "r1",
      {"quantity"},
      {{"g", {"k"}, {{"n", MeasureSchema::Type::kInt, 0}}}},
      {{"note", Type::kText, 0}, {"count", Type::kInt, 0}, {"total", Type::kDecimal, 2}}};
  const SampleItem item_{{{"1"}, {"2"}, {"3"}}, Item7OfBatch1()};
  std::optional<Results> results_;
};

TEST_F(OutputAnswerTest, TakesRecordsOfLinesThatCount) {
  const auto outcome = Decode(absl::StrCat(
      R"([{"line":)", item_[2].line(), R"(,"record":{"total":"1.5","note":"ä\"","count":7}},)",
      R"({"line":)", item_[0].line(), R"(,"record":{"total":null,"note":"","count":"-3"}}])"));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_THAT(results_->TakeOutputs(),
              ElementsAre(base::OutputRecord{item_[0].line(), {"", "-3", ""}},
                          base::OutputRecord{item_[2].line(), {"ä\"", "7", "1.50"}}));
}

TEST_F(OutputAnswerTest, NamesTheRecordThatIsWrong) {
  EXPECT_EQ(WrongRecord(R"({"note":"","count":1})"), "outputs[0]: has no member \"total\"");
  EXPECT_EQ(WrongRecord(R"({"note":"","count":1,"total":1,"more":1})"),
            "outputs[0]: has an unknown member \"more\"");
  EXPECT_EQ(WrongRecord(R"({"note":1,"count":1,"total":1})"),
            "outputs[0]: note: is no string and not null");
  EXPECT_THAT(WrongRecord(R"({"note":"","count":1,"total":1.5})"),
              HasSubstr("total: is a JSON number with a fraction"));
  EXPECT_EQ(WrongRecord("[]"), "outputs[0]: record: is no JSON object");
  EXPECT_EQ(Decode("{}").status().message(), "outputs: is no JSON array");
}

// The program works, and so do the neighbours of the line.
TEST_F(OutputAnswerTest, TellsARecordThatDoesNotFitFromAWrongAnswer) {
  EXPECT_EQ(
      RecordStatus(R"({"note":"","count":1,"total":"1.555"})"),
      absl::OutOfRangeError("outputs[0]: outputs: total: '1.555' needs more than 2 decimals"));
  EXPECT_EQ(RecordStatus(R"({"note":"","count":"NaN","total":1})"),
            absl::OutOfRangeError("outputs[0]: outputs: count: 'NaN' is not a decimal number"));
  const std::string large =
      absl::StrCat(R"({"note":")", std::string(1 << 16, 'x'), R"(","count":1,"total":1})");
  EXPECT_TRUE(absl::IsOutOfRange(RecordStatus(large)));
}

TEST_F(OutputAnswerTest, RefusesARecordOfARejectedOrUnknownLine) {
  constexpr char kRecord[] = R"(,"record":{"note":"","count":1,"total":1}}])";
  for (const int64_t line : {item_[1].line(), int64_t{99}}) {
    EXPECT_EQ(Decode(absl::StrCat("[{\"line\":", line, kRecord)).status().message(),
              absl::StrCat("outputs[0]: line: ", line, " is no line of the item, or is rejected"));
  }
}

TEST_F(AnswerTest, RefusesRecordsOfAJobWithoutOutputs) {
  EXPECT_EQ(Wrong(R"({"item":"1/7","outcome":"ok","outputs":[]})"), "outputs: the job has none");
}

}  // namespace

}  // namespace muster::handler::command
