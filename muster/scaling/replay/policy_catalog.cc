// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/policy_catalog.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/scaling/replay/baseline_policies.h"
#include "muster/scaling/replay/distribution.h"

namespace muster::scaling::replay {
namespace {

constexpr double kDefaultKedaTarget = 5;  // KEDA's queueLength for Azure storage queues
constexpr std::array<absl::string_view, 4> kTargets = {"default", "mud", "mud/2", "mud/4"};
constexpr std::array<absl::string_view, 3> kPaces = {"default", "fast", "push"};

absl::Status NoSuch(absl::string_view name, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("policy '", name, "': ", reason));
}

double ItemsWithinSla(const SimOptions& options) {
  return std::max(1.0, options.rate() * absl::ToDoubleSeconds(options.sla));
}

// Instead of the queue's length, what the deadline policy wants; each replica stands for one.
constexpr absl::string_view kDesired = "desired";

absl::StatusOr<double> TargetOf(absl::string_view name, absl::string_view target,
                                const SimOptions& options) {
  if (target == "default") return kDefaultKedaTarget;
  if (target == "mud") return ItemsWithinSla(options);
  if (target == "mud/2") return ItemsWithinSla(options) / 2;
  if (target == "mud/4") return ItemsWithinSla(options) / 4;
  double number;
  if (absl::SimpleAtod(target, &number) && number > 0 && number <= kMaxItems) return number;
  if (target == kDesired) return 1;
  return NoSuch(name, "its target is default, mud, mud/2, mud/4, desired or a number above 0");
}

absl::Status SetPace(absl::string_view name, absl::string_view pace, KedaSettings* settings) {
  if (pace == "fast") {
    settings->poll = absl::Seconds(5);
    settings->cooldown = absl::Seconds(60);
    settings->hpa.behavior = HpaBehavior{20, 900, absl::Seconds(60)};
  } else if (pace == "push") {
    settings->push = true;
  } else if (pace == "direct") {
    settings->push = true;
    settings->cooldown = absl::ZeroDuration();
    settings->hpa.behavior = HpaBehavior{kMaxReplicas, 0, absl::ZeroDuration()};
  } else if (pace == "behavior") {
    settings->hpa.behavior = HpaBehavior{};
  } else if (pace != "default") {
    return NoSuch(name, "its pace is default, fast, push, behavior or direct");
  }
  return absl::OkStatus();
}

std::string SettingsText(const KedaSettings& settings, bool is_advised) {
  std::string text = is_advised ? "target=1 desired" : absl::StrCat("target=", settings.hpa.target);
  if (settings.keda) {
    absl::StrAppend(&text,
                    ", poll=", settings.push ? "push" : base::DurationToString(settings.poll),
                    ", cooldown=", base::DurationToString(settings.cooldown));
  }
  if (const std::optional<HpaBehavior>& behavior = settings.hpa.behavior; behavior.has_value()) {
    absl::StrAppend(&text, ", up=", behavior->up_percent, "% or ", behavior->up_pods,
                    ", stabilization=", base::DurationToString(behavior->down_stabilization));
  }
  return text;
}

absl::Duration DrawPhase(const base::UniformSource& uniform, absl::Duration period) {
  return absl::Floor(period * uniform(), absl::Seconds(1));
}

using MakePolicy = std::function<std::unique_ptr<scaling::policy::Policy>()>;

// `make_adviser` is empty where the queue's length counts.
PolicyEntry KedaEntry(std::string name, const KedaSettings& settings, MakePolicy make_adviser) {
  std::string text = SettingsText(settings, make_adviser != nullptr);
  const auto make = [settings, make_adviser = std::move(make_adviser)](
                        uint64_t seed) -> std::unique_ptr<scaling::policy::Policy> {
    KedaSettings phased = settings;
    const base::UniformSource uniform = Stream(seed, RandomStream::kPolicyPhases);
    phased.poll_phase = DrawPhase(uniform, settings.poll);
    phased.hpa_phase = DrawPhase(uniform, kHpaPeriod);
    return std::make_unique<KedaPolicy>(phased, make_adviser ? make_adviser() : nullptr);
  };
  return {std::move(name), std::move(text), make};
}

absl::StatusOr<MakePolicy> DeadlineMaker(const scaling::policy::DeadlineOptions& options) {
  // Create the policy once here, so that wrong options are reported before anything runs.
  MUSTER_RETURN_IF_ERROR(scaling::policy::MakeDeadlinePolicy(options).status());
  return [options] { return *scaling::policy::MakeDeadlinePolicy(options); };
}

using Words = std::vector<absl::string_view>;

absl::StatusOr<PolicyEntry> Keda(absl::string_view name, const Words& words,
                                 const SimOptions& options,
                                 const scaling::policy::DeadlineOptions& deadline) {
  if (words.size() > 3) return NoSuch(name, "it has a target and a pace, and nothing more");
  KedaSettings settings;
  settings.keda = words[0] == "keda";
  settings.hpa.min = options.min;
  settings.hpa.max = options.max;
  const absl::string_view target = words.size() > 1 ? words[1] : "default";
  MUSTER_ASSIGN_OR_RETURN(settings.hpa.target, TargetOf(name, target, options));
  if (words.size() > 2) MUSTER_RETURN_IF_ERROR(SetPace(name, words[2], &settings));
  MakePolicy make_adviser;
  if (target == kDesired) {
    MUSTER_ASSIGN_OR_RETURN(make_adviser, DeadlineMaker(deadline));
  }
  return KedaEntry(std::string(name), settings, std::move(make_adviser));
}

absl::StatusOr<std::vector<PolicyEntry>> KedaSweep(
    const SimOptions& options, const scaling::policy::DeadlineOptions& deadline) {
  std::vector<PolicyEntry> sweep;
  for (const absl::string_view target : kTargets) {
    for (const absl::string_view pace : kPaces) {
      MUSTER_ASSIGN_OR_RETURN(PolicyEntry entry, Keda(absl::StrCat("keda:", target, ":", pace),
                                                      {"keda", target, pace}, options, deadline));
      sweep.push_back(std::move(entry));
    }
  }
  return sweep;
}

absl::StatusOr<PolicyEntry> Backlog(absl::string_view name, const Words& words,
                                    const SimOptions& options) {
  if (words.size() > 2) return NoSuch(name, "it has a number of items, and nothing more");
  MUSTER_ASSIGN_OR_RETURN(const double items,
                          TargetOf(name, words.size() > 1 ? words[1] : "mud", options));
  return PolicyEntry{std::string(name), absl::StrCat("items=", items),
                     [items](uint64_t) { return std::make_unique<BacklogPolicy>(items); }};
}

absl::StatusOr<PolicyEntry> Fixed(absl::string_view name, const Words& words) {
  int replicas;
  if (words.size() != 2 || !absl::SimpleAtoi(words[1], &replicas) || replicas < 0 ||
      replicas > kMaxReplicas) {
    return NoSuch(name, "it needs its number of replicas: fixed:8");
  }
  return PolicyEntry{std::string(name), absl::StrCat("replicas=", replicas),
                     [replicas](uint64_t) { return std::make_unique<FixedPolicy>(replicas); }};
}

absl::StatusOr<PolicyEntry> Deadline(const scaling::policy::DeadlineOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const MakePolicy make, DeadlineMaker(options));
  return PolicyEntry{
      "deadline",
      absl::StrCat("sla=", base::DurationToString(options.sla), ", patience=", options.patience),
      [make](uint64_t) { return make(); }};
}

absl::StatusOr<PolicyEntry> FindOne(absl::string_view name, const SimOptions& options,
                                    const scaling::policy::DeadlineOptions& deadline) {
  const Words words = absl::StrSplit(name, ':');
  if (name == "deadline") return Deadline(deadline);
  if (name == "oracle") return PolicyEntry{"oracle", "", nullptr};
  if (words[0] == "keda" || words[0] == "hpa") return Keda(name, words, options, deadline);
  if (words[0] == "backlog") return Backlog(name, words, options);
  if (words[0] == "fixed") return Fixed(name, words);
  return NoSuch(name, "there are deadline, keda, keda:sweep, hpa, backlog, fixed:N and oracle");
}

}  // namespace

absl::StatusOr<std::vector<PolicyEntry>> FindPolicies(
    absl::string_view name, const SimOptions& options,
    const scaling::policy::DeadlineOptions& deadline) {
  if (name == "keda:sweep") return KedaSweep(options, deadline);
  MUSTER_ASSIGN_OR_RETURN(PolicyEntry entry, FindOne(name, options, deadline));
  return std::vector<PolicyEntry>{std::move(entry)};
}

}  // namespace muster::scaling::replay
