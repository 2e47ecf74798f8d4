// SPDX-License-Identifier: Apache-2.0

// QuoteView: prints a forecast of work, for people and for programs.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "cli/output/environment.h"
#include "muster/v1/batch_service.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

struct QuoteView {
  std::string target;                   // of the scaling agent; empty: the quote is for a job
  std::string job;                      // empty: the quote is for a target
  std::optional<int64_t> transactions;  // of the job
  v1::QuoteResponse quote;
  std::optional<double> price;  // of a replica's hour, in dollars

  // Prints it. That it would be late is an answer, not an error: the exit code is kDeadlineMissed.
  void Show(const CommonOptions& options, const Environment& environment) const;

 private:
  // "name: value" lines, and what it comes to. Times are told from `now`, too.
  void PrintTo(std::ostream& out, absl::Time now) const;
  void PrintReplicasTo(std::ostream& out) const;
  nlohmann::ordered_json Json() const;
  std::optional<double> Cost() const;
};

// muster batch quote

// Adds the verb to `batch`. `environment` outlives the app.
void AddQuoteVerb(CLI::App* batch, const Environment& environment);

// What --sla means where work is only asked about.
inline constexpr char kAskedSla[] =
    "How long it may take, such as 5m; without it, what the rules promise";

}  // namespace muster::cli
