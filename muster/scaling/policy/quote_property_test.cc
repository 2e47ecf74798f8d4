// SPDX-License-Identifier: Apache-2.0

// Properties of a quote for all observations.
#include "gtest/gtest.h"
#include "muster/scaling/policy/quote.h"
#include "rapidcheck.h"
#include "tests/fakes/scaling/policy/scene_generator.h"

namespace muster::scaling::policy {
namespace {

// A random target, and a random question about it.
struct Question {
  Question() {
    scene.looks = 0;
    if (scene.milli_rate == 0) scene.milli_rate = 1;
    target = Play(scene);
    work.items = *rc::gen::oneOf(rc::gen::inRange<int64_t>(1, 100'000),
                                 rc::gen::inRange<int64_t>(1, kMaxQuotedItems + 1));
    if (*rc::gen::arbitrary<bool>()) work.sla = absl::Seconds(*rc::gen::inRange(1, 2000));
  }

  Quotation Answer() const { return Quote(work, target.observation, target.options).value(); }
  absl::Duration promise() const { return work.sla.value_or(target.options.sla); }

  Scene scene = AnyScene();
  TargetFixture target;
  QuotedWork work;
};

TEST(QuotePropertyTest, IsFeasibleExactlyWhereNothingIsLate) {
  CheckEvery([] {
    const Quotation quotation = Question().Answer();
    RC_ASSERT(quotation.feasible == (quotation.late_by == absl::ZeroDuration()));
    if (!quotation.feasible) RC_ASSERT(quotation.finish > quotation.deadline);
    // A thousandth of an item is a rounding error.
    if (quotation.feasible) {
      RC_ASSERT(quotation.finish <= quotation.deadline + absl::Seconds(1.1));
    }
    RC_ASSERT(quotation.replicas <= quotation.max);
    RC_ASSERT(quotation.replica_seconds > 0);
    RC_ASSERT(!quotation.explanation.empty());
  });
}

TEST(QuotePropertyTest, MoreItemsAreNeverMoreFeasible) {
  CheckEvery([] {
    Question question;
    const Quotation fewer = question.Answer();
    RC_PRE(question.work.items < kMaxQuotedItems);
    question.work.items = *rc::gen::inRange<int64_t>(question.work.items + 1, kMaxQuotedItems + 1);
    const Quotation more = question.Answer();
    RC_ASSERT(fewer.feasible || !more.feasible);
    RC_ASSERT(more.replicas >= fewer.replicas);
    if (more.replicas == fewer.replicas && question.scene.tasks == question.scene.max_tasks) {
      RC_ASSERT(more.finish >= fewer.finish);
    }
    // The comparison is outside the macro: RapidCheck cannot decompose optionals with g++ 14.
    const bool no_shorter = more.shortest_sla >= fewer.shortest_sla;
    if (more.shortest_sla.has_value()) RC_ASSERT(no_shorter);
  });
}

TEST(QuotePropertyTest, ALongerPromiseIsNeverLessFeasible) {
  CheckEvery([] {
    Question question;
    RC_PRE(question.promise() * 0.9 >= absl::Seconds(question.scene.cold_start));
    const Quotation shorter = question.Answer();
    question.work.sla = question.promise() + absl::Seconds(*rc::gen::inRange(1, 1000));
    const Quotation longer = question.Answer();
    RC_ASSERT(longer.feasible || !shorter.feasible);
  });
}

TEST(QuotePropertyTest, AsManyAsItNeedsAreEnoughAndOneLessIsNot) {
  CheckEvery([] {
    Question question;
    RC_PRE(question.promise() * 0.9 >= absl::Seconds(question.scene.cold_start));
    question.scene.min = 0;
    question.target.observation.bounds.min = 0;
    const Quotation asked = question.Answer();
    RC_PRE(asked.max >= asked.replicas_now);
    RC_PRE(asked.needs > 0 && asked.needs >= asked.replicas_now);
    RC_PRE(question.scene.throttled_percent < 2 && asked.needs < 500'000);
    question.target.observation.bounds.max = asked.needs;
    RC_ASSERT(question.Answer().feasible);
    RC_PRE(asked.needs > asked.replicas_now);
    question.target.observation.bounds.max = asked.needs - 1;
    RC_ASSERT(!question.Answer().feasible);
  });
}

TEST(QuotePropertyTest, TheShortestPromiseIsKept) {
  CheckEvery([] {
    Question question;
    const Quotation asked = question.Answer();
    RC_PRE(asked.shortest_sla.has_value() && *asked.shortest_sla < absl::Hours(24 * 365));
    question.work.sla = asked.shortest_sla;
    RC_ASSERT(question.Answer().feasible);
  });
}

}  // namespace
}  // namespace muster::scaling::policy
