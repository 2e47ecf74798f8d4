#include "muster/scaling_sim/recording.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster::scaling_sim {

absl::StatusOr<std::unique_ptr<RecordingWriter>> RecordingWriter::Open(
    const std::string& path, const RecordingHeader& header) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    return absl::AlreadyExistsError(absl::StrCat("recording '", path, "' exists already"));
  }
  std::unique_ptr<RecordingWriter> writer(new RecordingWriter(path));
  writer->file_.open(path, std::ios::out | std::ios::app | std::ios::binary);
  MUSTER_RETURN_IF_ERROR(writer->WriteLine(EncodeHeader(header)));
  return writer;
}

absl::Status RecordingWriter::Write(const RecordedEvent& event) {
  return WriteLine(EncodeEvent(event));
}

absl::Status RecordingWriter::WriteLine(const std::string& line) {
  file_ << line << '\n' << std::flush;
  if (file_.good()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("recording '", path_, "' cannot be written"));
}

absl::StatusOr<std::unique_ptr<RecordingReader>> RecordingReader::Open(const std::string& path) {
  std::unique_ptr<RecordingReader> reader(new RecordingReader(path));
  reader->file_.open(path, std::ios::binary);
  if (!reader->file_.good()) {
    return absl::NotFoundError(absl::StrCat("recording '", path, "' cannot be opened"));
  }
  std::string line;
  if (!reader->ReadLine(&line)) {
    return absl::DataLossError(absl::StrCat("recording '", path, "' is empty"));
  }
  absl::StatusOr<RecordingHeader> header = DecodeHeader(line);
  if (!header.ok()) return base::Annotate(header.status(), absl::StrCat(path, " line 1"));
  reader->header_ = *std::move(header);
  return reader;
}

bool RecordingReader::ReadLine(std::string* line) {
  // getline meets the end of the file only in a line that has no end of its own.
  if (!std::getline(file_, *line) || file_.eof()) return false;
  ++line_;
  return true;
}

absl::StatusOr<std::optional<RecordedEvent>> RecordingReader::Next() {
  std::string line;
  if (!ReadLine(&line)) return std::nullopt;
  absl::StatusOr<RecordedEvent> event = DecodeEvent(line);
  if (!event.ok()) return base::Annotate(event.status(), absl::StrCat(path_, " line ", line_));
  return *std::move(event);
}

}  // namespace muster::scaling_sim
