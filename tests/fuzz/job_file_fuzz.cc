// SPDX-License-Identifier: Apache-2.0

// A job file.
#include "absl/strings/str_cat.h"
#include "muster/job/job_file.h"
#include "tests/fuzz/mistakes.h"
#include "tests/fuzz/property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  const absl::string_view text = Text(data, size);
  const auto job = muster::job::ParseJob(text, "job.yaml");
  if (!job.ok()) {
    CheckMistakes(job.status(), "job.yaml", text);
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
