// SPDX-License-Identifier: Apache-2.0

// The retail job with nothing around it: one loop over the file, on one core, that computes the
// same totals exactly. No queue, no durability, no second thread: what muster's figures are held
// against.
//
//   bare_loop INPUT.csv             prints the figures as JSON
//   bare_loop --groups INPUT.csv    prints the totals, as `muster report BATCH -o json` does
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/retail/csv_reader.h"
#include "bench/retail/totals.h"
#include "muster/base/fingerprint.h"

namespace {

using bench::Totals;

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::string FiguresJson(const Totals& totals, double seconds) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return absl::StrCat("{\"transactions\":", totals.transactions, ",\"rejected\":", totals.rejected,
                      ",\"seconds\":", seconds, ",\"transactions_per_second\":",
                      static_cast<int64_t>(static_cast<double>(totals.transactions) / seconds),
                      ",\"cpu_seconds\":", Seconds(usage.ru_utime) + Seconds(usage.ru_stime),
                      ",\"peak_rss_bytes\":", int64_t{usage.ru_maxrss} * 1024, ",\"checksum\":\"",
                      muster::base::Fingerprint(bench::GroupsJson(totals)).ToHex(), "\"}");
}

}  // namespace

int main(int argc, char** argv) {
  const bool show_groups = argc == 3 && std::strcmp(argv[1], "--groups") == 0;
  if (argc != 2 && !show_groups) bench::Die("usage: bare_loop [--groups] INPUT.csv");
  const auto start = std::chrono::steady_clock::now();
  bench::CsvReader reader(bench::MapFile(argv[argc - 1]));
  bench::Biller biller(&reader, bench::FindColumns(&reader));
  const Totals& totals = biller.Run();
  const std::chrono::duration<double> lapse = std::chrono::steady_clock::now() - start;
  const std::string json =
      show_groups ? bench::GroupsJson(totals) : FiguresJson(totals, lapse.count());
  std::puts(json.c_str());
  return 0;
}
