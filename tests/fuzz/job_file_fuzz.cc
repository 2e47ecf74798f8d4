// A job file.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/utf8.h"
#include "muster/job/job_file.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

bool IsPrintable(absl::string_view text) {
  while (!text.empty()) {
    const size_t bytes = text[0] == '\t' ? 1 : base::PrintableUtf8Prefix(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

// "FILE:LINE:COLUMN: what is wrong"
void CheckMistake(absl::string_view mistake, int lines) {
  const std::vector<absl::string_view> parts = absl::StrSplit(mistake, absl::MaxSplits(':', 3));
  int line = 0;
  int column = 0;
  Must(parts.size() == 4 && parts[0] == "job.yaml" && absl::SimpleAtoi(parts[1], &line) &&
           absl::SimpleAtoi(parts[2], &column) && parts[3].size() > 1 && parts[3][0] == ' ',
       "a mistake begins with file, line and column");
  Must(line >= 1 && line <= lines + 1 && column >= 1, "the place of a mistake is in the file");
  Must(IsPrintable(mistake), "a mistake can be printed");
}

void CheckMistakes(const absl::Status& status, absl::string_view text) {
  Must(absl::IsInvalidArgument(status), "a job file that is refused is InvalidArgument");
  const int lines = 1 + static_cast<int>(std::count(text.begin(), text.end(), '\n') +
                                         std::count(text.begin(), text.end(), '\r'));
  std::vector<absl::string_view> mistakes = absl::StrSplit(status.message(), '\n');
  int more = 0;
  if (absl::ConsumePrefix(&mistakes.back(), "and ") &&
      absl::ConsumeSuffix(&mistakes.back(), " more")) {
    Must(absl::SimpleAtoi(mistakes.back(), &more), "what is left out is counted");
    mistakes.pop_back();
  }
  for (const absl::string_view mistake : mistakes) CheckMistake(mistake, lines);
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  const absl::string_view text = Text(data, size);
  const auto job = muster::job::ParseJob(text, "job.yaml");
  if (!job.ok()) {
    CheckMistakes(job.status(), text);
    return 0;
  }
  Must(job->text == text && job->revision.size() == 32, "a job keeps its text");
  const auto again = muster::job::ParseJob(job->text, "again.yaml");
  Must(again.ok() && again->revision == job->revision, "the same text is the same revision");
  // A byte order mark stands at the beginning of a file, and nowhere else.
  if (!text.empty() && static_cast<unsigned char>(text[0]) >= 0x80) return 0;
  const auto commented = muster::job::ParseJob(absl::StrCat("# why\n", text), "job.yaml");
  Must(commented.ok() && commented->revision == job->revision,
       "a comment does not change the revision");
  return 0;
}
