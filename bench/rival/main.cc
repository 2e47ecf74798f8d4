// SPDX-License-Identifier: Apache-2.0

// The retail job as a competent engineer would write it without muster: nats.c, a JetStream server,
// two workers and SQLite. bench/mesh/mesh_bench compares the mesh with it.
//
//   rival run SERVER INPUT.csv REPORT.db    the retail job; prints figures as JSON
//   rival tiny SERVER INPUT.csv REPORT.db   items of one line, and nothing done with them
//   rival latency SERVER SAMPLES            publish → a worker that keeps a fetch open
//   rival plain SERVER SAMPLES              the same without JetStream
//
// SERVER is nats://HOST:PORT, with nothing in its store. `run` compares its totals with those of a
// plain loop over the same file, off the clock, and fails unless they are the same.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/retail/totals.h"
#include "bench/rival/latency.h"
#include "bench/rival/pipeline.h"

namespace rival {
namespace {

constexpr char kUsage[] =
    "usage: rival run|tiny SERVER INPUT.csv REPORT.db | latency|plain SERVER N";

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void CheckTotals(const PipelineOptions& options, const PipelineFigures& figures) {
  bench::CsvReader reader(bench::MapFile(options.input.c_str()));
  bench::Biller biller(&reader, bench::FindColumns(&reader));
  const bench::Totals& expected = biller.Run();
  if (figures.transactions != expected.transactions || figures.rejected != expected.rejected ||
      figures.groups != bench::GroupsJson(expected)) {
    bench::Die("the totals are wrong");
  }
}

void Run(const PipelineOptions& options) {
  const PipelineFigures figures = RunPipeline(options);
  const double cpu = CpuSeconds();
  if (options.bill) CheckTotals(options, figures);
  std::puts(absl::StrCat(
                "{\"items\":", figures.items, ",\"transactions\":", figures.transactions,
                ",\"rejected\":", figures.rejected, ",\"seconds\":", figures.seconds,
                ",\"transactions_per_second\":",
                static_cast<int64_t>(static_cast<double>(figures.transactions) / figures.seconds),
                ",\"cpu_seconds\":", cpu, "}")
                .c_str());
}

void Latency(const LatencyOptions& options) {
  std::vector<double> micros = MeasureLatency(options);
  std::sort(micros.begin(), micros.end());
  const auto quantile = [&](size_t percent) {
    return micros[std::min(micros.size() * percent / 100, micros.size() - 1)];
  };
  std::puts(absl::StrCat("{\"samples\":", micros.size(), ",\"p50_us\":", quantile(50),
                         ",\"p99_us\":", quantile(99), "}")
                .c_str());
}

}  // namespace
}  // namespace rival

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool is_run = words.size() == 4 && (words[0] == "run" || words[0] == "tiny");
  const bool is_latency = words.size() == 3 && (words[0] == "latency" || words[0] == "plain");
  if (is_run) {
    rival::PipelineOptions options{.server = words[1], .input = words[2], .report = words[3]};
    options.bill = words[0] == "run";
    if (!options.bill) options.lines = 1;
    rival::Run(options);
  } else if (is_latency && std::atoi(words[2].c_str()) > 0) {
    rival::LatencyOptions options{.server = words[1]};
    options.path = words[0] == "plain" ? rival::Path::kPlain : rival::Path::kJetStream;
    options.samples = std::atoi(words[2].c_str());
    rival::Latency(options);
  } else {
    bench::Die(rival::kUsage);
  }
  return 0;
}
