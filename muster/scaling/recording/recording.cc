#include "muster/scaling/recording/recording.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster::scaling::recording {

namespace {

std::string PartBefore(const std::string& path) { return absl::StrCat(path, ".1"); }

}  // namespace

absl::StatusOr<std::unique_ptr<RecordingWriter>> RecordingWriter::Open(
    const std::string& path, const RecordingHeader& header, int64_t most_bytes) {
  // A pipe or a device holds no recording that could be lost.
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    return absl::AlreadyExistsError(absl::StrCat("recording '", path, "' exists already"));
  }
  std::unique_ptr<RecordingWriter> writer(new RecordingWriter(path, header, most_bytes));
  MUSTER_RETURN_IF_ERROR(writer->Begin());
  return writer;
}

absl::Status RecordingWriter::Write(const RecordedEvent& event) {
  if (const auto* const rules = std::get_if<RecordedRules>(&event)) header_.rules = rules->text;
  const std::string line = EncodeEvent(event);
  if (IsFull(line)) MUSTER_RETURN_IF_ERROR(BeginNextPart());
  return WriteLine(line);
}

bool RecordingWriter::IsFull(const std::string& line) const {
  const auto more = static_cast<int64_t>(line.size()) + 1;
  return bytes_ > header_bytes_ && bytes_ + more > most_bytes_;
}

// Without a buffer: what could not be written must not come later, when there is room again.
absl::Status RecordingWriter::Begin() {
  file_ = std::ofstream();
  file_.rdbuf()->pubsetbuf(nullptr, 0);
  file_.open(path_, std::ios::out | std::ios::app | std::ios::binary);
  bytes_ = 0;
  MUSTER_RETURN_IF_ERROR(WriteLine(EncodeHeader(header_)));
  header_bytes_ = bytes_;
  return absl::OkStatus();
}

absl::Status RecordingWriter::BeginNextPart() {
  std::error_code error;
  // A device that somebody records to is not to be moved away.
  if (!std::filesystem::is_regular_file(path_, error)) return absl::OkStatus();
  std::filesystem::rename(path_, PartBefore(path_), error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("recording '", path_, "' cannot be moved: ", error.message()));
  }
  ++header_.part;
  return Begin();
}

absl::Status RecordingWriter::WriteLine(const std::string& line) {
  const std::string whole = absl::StrCat(line, "\n");
  file_.write(whole.data(), static_cast<std::streamsize>(whole.size()));
  bytes_ += static_cast<int64_t>(whole.size());
  if (file_.flush().good()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("recording '", path_, "' cannot be written"));
}

absl::StatusOr<std::unique_ptr<RecordingReader>> RecordingReader::Open(const std::string& path) {
  std::unique_ptr<RecordingReader> reader(new RecordingReader);
  MUSTER_ASSIGN_OR_RETURN(reader->header_, reader->OpenPart(path));
  if (reader->header_.part == 1) return reader;
  std::unique_ptr<RecordingReader> before(new RecordingReader);
  absl::StatusOr<RecordingHeader> first = before->OpenPart(PartBefore(path));
  const bool precedes = first.ok() && first->part == reader->header_.part - 1 &&
                        first->target == reader->header_.target;
  if (!precedes) return reader;
  before->header_ = *std::move(first);
  before->next_path_ = path;
  return before;
}

absl::StatusOr<RecordingHeader> RecordingReader::OpenPart(const std::string& path) {
  path_ = path;
  line_ = 0;
  file_ = std::ifstream(path, std::ios::binary);
  if (!file_.good()) {
    return absl::NotFoundError(absl::StrCat("recording '", path, "' cannot be opened"));
  }
  std::string line;
  if (!ReadLine(&line)) {
    return absl::DataLossError(absl::StrCat("recording '", path, "' is empty"));
  }
  absl::StatusOr<RecordingHeader> header = DecodeHeader(line);
  if (!header.ok()) return base::Annotate(header.status(), absl::StrCat(path, " line 1"));
  return header;
}

bool RecordingReader::ReadLine(std::string* line) {
  // getline meets the end of the file only in a line that has no end of its own.
  if (!std::getline(file_, *line) || file_.eof()) return false;
  ++line_;
  return true;
}

absl::StatusOr<std::optional<RecordedEvent>> RecordingReader::Next() {
  std::string line;
  while (!ReadLine(&line)) {
    if (next_path_.empty()) return std::nullopt;
    MUSTER_RETURN_IF_ERROR(OpenPart(std::exchange(next_path_, "")).status());
  }
  absl::StatusOr<RecordedEvent> event = DecodeEvent(line);
  if (!event.ok()) return base::Annotate(event.status(), absl::StrCat(path_, " line ", line_));
  return *std::move(event);
}

}  // namespace muster::scaling::recording
