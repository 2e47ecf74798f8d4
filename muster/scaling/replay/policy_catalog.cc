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

absl::StatusOr<double> TargetOf(absl::string_view name, absl::string_view target,
                                const SimOptions& options) {
  if (target == "default") return kDefaultKedaTarget;
  if (target == "mud") return ItemsWithinSla(options);
  if (target == "mud/2") return ItemsWithinSla(options) / 2;
  if (target == "mud/4") return ItemsWithinSla(options) / 4;
  double number;
  if (absl::SimpleAtod(target, &number) && number > 0 && number <= kMaxItems) return number;
  return NoSuch(name, "its target is default, mud, mud/2, mud/4 or a number above 0");
}

absl::Status SetPace(absl::string_view name, absl::string_view pace, KedaSettings* settings) {
  if (pace == "fast") {
    settings->poll = absl::Seconds(5);
    settings->cooldown = absl::Seconds(60);
    settings->hpa.behavior = HpaBehavior{20, 900, absl::Seconds(60)};
  } else if (pace == "push") {
    settings->push = true;
  } else if (pace == "behavior") {
    settings->hpa.behavior = HpaBehavior{};
  } else if (pace != "default") {
    return NoSuch(name, "its pace is default, fast, push or behavior");
  }
  return absl::OkStatus();
}

std::string SettingsText(const KedaSettings& settings) {
  std::string text = absl::StrCat("target=", settings.hpa.target);
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

PolicyEntry KedaEntry(std::string name, const KedaSettings& settings) {
  const auto make = [settings](uint64_t seed) -> std::unique_ptr<scaling::policy::Policy> {
    KedaSettings phased = settings;
    const base::UniformSource uniform = Stream(seed, RandomStream::kPolicyPhases);
    phased.poll_phase = DrawPhase(uniform, settings.poll);
    phased.hpa_phase = DrawPhase(uniform, kHpaPeriod);
    return std::make_unique<KedaPolicy>(phased);
  };
  return {std::move(name), SettingsText(settings), make};
}

using Words = std::vector<absl::string_view>;

absl::StatusOr<PolicyEntry> Keda(absl::string_view name, const Words& words,
                                 const SimOptions& options) {
  if (words.size() > 3) return NoSuch(name, "it has a target and a pace, and nothing more");
  KedaSettings settings;
  settings.keda = words[0] == "keda";
  settings.hpa.min = options.min;
  settings.hpa.max = options.max;
  const absl::string_view target = words.size() > 1 ? words[1] : "default";
  MUSTER_ASSIGN_OR_RETURN(settings.hpa.target, TargetOf(name, target, options));
  if (words.size() > 2) MUSTER_RETURN_IF_ERROR(SetPace(name, words[2], &settings));
  return KedaEntry(std::string(name), settings);
}

absl::StatusOr<std::vector<PolicyEntry>> KedaSweep(const SimOptions& options) {
  std::vector<PolicyEntry> sweep;
  for (const absl::string_view target : kTargets) {
    for (const absl::string_view pace : kPaces) {
      MUSTER_ASSIGN_OR_RETURN(PolicyEntry entry, Keda(absl::StrCat("keda:", target, ":", pace),
                                                      {"keda", target, pace}, options));
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
  // Create the policy once here, so that wrong options are reported before anything runs.
  MUSTER_RETURN_IF_ERROR(scaling::policy::MakeDeadlinePolicy(options).status());
  return PolicyEntry{
      "deadline",
      absl::StrCat("sla=", base::DurationToString(options.sla), ", patience=", options.patience),
      [options](uint64_t) { return *scaling::policy::MakeDeadlinePolicy(options); }};
}

absl::StatusOr<PolicyEntry> FindOne(absl::string_view name, const SimOptions& options,
                                    const scaling::policy::DeadlineOptions& deadline) {
  const Words words = absl::StrSplit(name, ':');
  if (name == "deadline") return Deadline(deadline);
  if (name == "oracle") return PolicyEntry{"oracle", "", nullptr};
  if (words[0] == "keda" || words[0] == "hpa") return Keda(name, words, options);
  if (words[0] == "backlog") return Backlog(name, words, options);
  if (words[0] == "fixed") return Fixed(name, words);
  return NoSuch(name, "there are deadline, keda, keda:sweep, hpa, backlog, fixed:N and oracle");
}

}  // namespace

absl::StatusOr<std::vector<PolicyEntry>> FindPolicies(
    absl::string_view name, const SimOptions& options,
    const scaling::policy::DeadlineOptions& deadline) {
  if (name == "keda:sweep") return KedaSweep(options);
  MUSTER_ASSIGN_OR_RETURN(PolicyEntry entry, FindOne(name, options, deadline));
  return std::vector<PolicyEntry>{std::move(entry)};
}

}  // namespace muster::scaling::replay
