// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/serve.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/handler/command/protocol.h"
#include "muster/handler/sample_item.h"

namespace muster::handler::command {
namespace {

using handler::Group;
using handler::Outcome;
using handler::Results;
using testing::ElementsAre;
using testing::HasSubstr;

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

// The results of a linked handler in this process must pass through a conversation unchanged.
class ServeTest : public testing::Test {
 protected:
  // Serves `input`; returns the output.
  std::string Serve(const std::string& input, Body body) {
    std::FILE* const in = std::tmpfile();
    std::FILE* const out = std::tmpfile();
    std::fwrite(input.data(), 1, input.size(), in);
    std::rewind(in);
    LambdaHandler handler(std::move(body));
    status_ = handler::command::Serve(handler, schema_, in, out);
    std::string answers(static_cast<size_t>(std::ftell(out)), '\0');
    std::rewind(out);
    answers.resize(std::fread(answers.data(), 1, answers.size(), out));
    std::fclose(in);
    std::fclose(out);
    return answers;
  }

  // Lets `body` work on item_ through a request and an answer.
  Outcome Converse(Body body) {
    std::string answer =
        Serve(EncodeRequest(schema_, item_.get(), absl::Minutes(1), results_), std::move(body));
    EXPECT_TRUE(status_.ok()) << status_;
    if (!answer.empty()) answer.pop_back();  // the line feed
    const absl::StatusOr<Outcome> outcome = DecodeAnswer(answer, schema_, item_.get(), results_);
    EXPECT_TRUE(outcome.ok()) << outcome.status() << "\n" << answer;
    return outcome.value_or(Outcome());
  }

  static handler::ItemContext Context() {
    handler::ItemContext context;
    context.batch = 3;
    context.index = 7;
    context.attempt = 4;
    context.trace = {0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 1, "a=b"};
    return context;
  }

  const handler::JobSchema schema_{"job",
                                   "r1",
                                   {"customer", "amount"},
                                   {{"by_customer",
                                     {"customer"},
                                     {{"revenue", handler::MeasureSchema::Type::kDecimal, 2},
                                      {"units", handler::MeasureSchema::Type::kInt, 0}}}},
                                   {{"note", base::OutputColumn::Type::kText, 0},
                                    {"total", base::OutputColumn::Type::kDecimal, 2}}};
  const handler::SampleItem item_{{{"ann \"q\" ä", "1.50"}, {"bob", "x"}, {"ann \"q\" ä", "2"}},
                                  Context()};
  Results results_{&schema_, item_.size()};
  absl::Status status_;
};

TEST_F(ServeTest, PassesOnWhatWasCountedAndRejected) {
  const Outcome outcome = Converse([](const handler::WorkItem& item, Results& results) {
    EXPECT_EQ(item.id(), "3/7");
    EXPECT_EQ(item.attempt(), 4);
    EXPECT_EQ(item.trace(), Context().trace);
    for (const handler::Transaction& t : item.transactions()) {
      const auto amount = base::Decimal::TryParse(t.fields()[1]);
      if (!amount) {
        results.Reject(t, absl::StrCat("line ", t.line(), ": no amount"));
      } else {
        results.Count(t, {{Group{0}, {t.fields()[0]}, {*amount, base::Decimal::FromInt(1)}}});
      }
    }
    return Outcome::Ok();
  });
  EXPECT_EQ(outcome.kind, Outcome::Kind::kOk);
  EXPECT_TRUE(results_.Verdict().ok());
  ASSERT_EQ(results_.rejections().size(), 1u);
  EXPECT_EQ(results_.rejections()[0].line, 3);
  EXPECT_EQ(results_.rejections()[0].reason, "line 3: no amount");
  const std::vector<handler::GroupPartial> partials = results_.TakePartials();
  ASSERT_EQ(partials.size(), 1u);
  ASSERT_EQ(partials[0].rows.size(), 1u);
  EXPECT_THAT(partials[0].rows[0].keys, ElementsAre("ann \"q\" ä"));
  EXPECT_EQ(partials[0].rows[0].measures[0].ToString(), "3.50");
  EXPECT_EQ(partials[0].rows[0].measures[1].ToString(), "2");
}

TEST_F(ServeTest, PassesOnWhyAnItemWasNotProcessed) {
  const auto converse = [this](const Outcome& said) {
    return Converse([&](const auto&, auto&) { return said; });
  };
  const Outcome retry = converse(Outcome::Retry(absl::Seconds(2), "later"));
  EXPECT_EQ(retry.kind, Outcome::Kind::kRetry);
  EXPECT_EQ(retry.delay, absl::Seconds(2));
  EXPECT_EQ(retry.why, "later");
  EXPECT_EQ(converse(Outcome::Defer(absl::Seconds(3), "not now")).delay, absl::Seconds(3));
  EXPECT_EQ(converse(Outcome::Dead("never")).kind, Outcome::Kind::kDead);
  EXPECT_EQ(converse(Outcome::Release()).kind, Outcome::Kind::kDefer);
  EXPECT_EQ(converse(Outcome()).why, "the handler gave no outcome");
  const Outcome thrown =
      Converse([](const auto&, auto&) -> Outcome { throw std::runtime_error("no \xff luck"); });
  EXPECT_EQ(thrown.kind, Outcome::Kind::kRetry);
  EXPECT_THAT(thrown.why, HasSubstr("the handler threw: no"));
}

TEST_F(ServeTest, AnswersOneRequestAfterAnother) {
  const std::string request = EncodeRequest(schema_, item_.get(), absl::Minutes(1), results_);
  int served = 0;
  const std::string answers = Serve(request + request + request, [&](const auto&, auto&) {
    ++served;
    return Outcome::Dead("no");
  });
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(served, 3);
  EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 3);
}

TEST_F(ServeTest, RefusesWhatIsNoRequestOfThisJob) {
  const std::string sound = EncodeRequest(schema_, item_.get(), absl::Minutes(1), results_);
  const auto refused = [&](const std::string& line) {
    Serve(line, [](const auto&, auto&) { return Outcome::Ok(); });
    return std::string(status_.message());
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string line = sound;
    line.replace(line.find(from), from.size(), to);
    return refused(line);
  };
  EXPECT_THAT(refused("hello\n"), HasSubstr("JSON"));
  EXPECT_THAT(changed("\"muster\":1", "\"muster\":2"), HasSubstr("version"));
  EXPECT_THAT(changed("\"amount\"", "\"sum\""), HasSubstr("columns"));
  EXPECT_THAT(changed("3/7", "3-7"), HasSubstr("names no item"));
  EXPECT_THAT(changed("\"attempt\"", "\"tries\""), HasSubstr("attempt"));
  EXPECT_THAT(changed(",\"1.50\"", ""), HasSubstr("field for each column"));
}

TEST_F(ServeTest, PassesOnRecords) {
  const Outcome outcome = Converse([](const handler::WorkItem& item, Results& results) {
    for (const handler::Transaction& t : item.transactions()) {
      results.Count(t, {}, {{std::string(t.fields()[0]), ""}, {"\\", std::string(t.fields()[1])}});
    }
    return Outcome::Ok();
  });
  EXPECT_EQ(outcome.kind, Outcome::Kind::kOk);
  ASSERT_EQ(results_.rejections().size(), 1u);
  EXPECT_EQ(results_.rejections()[0].reason, "outputs: total: 'x' is not a decimal number");
  EXPECT_THAT(results_.TakeOutputs(),
              ElementsAre(base::OutputRecord{item_[0].line(), {"ann \"q\" ä", ""}},
                          base::OutputRecord{item_[0].line(), {"\\", "1.50"}},
                          base::OutputRecord{item_[2].line(), {"ann \"q\" ä", ""}},
                          base::OutputRecord{item_[2].line(), {"\\", "2.00"}}));
}

}  // namespace
}  // namespace muster::handler::command
