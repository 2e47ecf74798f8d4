// SPDX-License-Identifier: Apache-2.0

// SQLite's own form of the log (https://sqlite.org/fileformat2.html#walformat); integers are
// big-endian.
//
//   header   magic u32, version u32, bytes of a page u32, checkpoint u32, salt 8, checksum 8
//   frame    page u32, pages of the file after a commit u32 (else 0), salt 8, checksum 8, the page
//
// A checksum covers the header or frame up to it, with all frames before. Frames with another salt
// are left from an earlier use of the file.
#include "muster/report/sqlite/write_ahead_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"
#include "muster/os/file_descriptor.h"

namespace muster::report::sqlite {
namespace {

constexpr size_t kLogHeaderBytes = 32;
constexpr size_t kFrameHeaderBytes = 24;
constexpr uint32_t kLogMagic = 0x377f0682;  // its last bit: the checksum's integers are big-endian
constexpr size_t kMinPageBytes = 512;
constexpr size_t kMaxPageBytes = 65536;

uint32_t Big(absl::string_view bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = at; i < at + 4; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

uint32_t Little(absl::string_view bytes, size_t at) { return __builtin_bswap32(Big(bytes, at)); }

class Checksum {
 public:
  explicit Checksum(bool big) : big_(big) {}

  void Add(absl::string_view bytes) {
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      a_ += (big_ ? Big(bytes, at) : Little(bytes, at)) + b_;
      b_ += (big_ ? Big(bytes, at + 4) : Little(bytes, at + 4)) + a_;
    }
  }
  bool Is(absl::string_view bytes, size_t at) const {
    return a_ == Big(bytes, at) && b_ == Big(bytes, at + 4);
  }

 private:
  const bool big_;
  uint32_t a_ = 0;
  uint32_t b_ = 0;
};

// Fewer than `bytes` at the file's end.
absl::StatusOr<std::string> ReadAt(int fd, size_t bytes, uint64_t offset, const std::string& path) {
  std::string read(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const ssize_t now = pread(fd, &read[done], bytes - done, static_cast<off_t>(offset + done));
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) return os::FileError(errno, "reading", path);
    if (now == 0) break;
    done += static_cast<size_t>(now);
  }
  read.resize(done);
  return read;
}

struct Scan {
  uint64_t damaged_at = 0;  // 0: no frame is damaged, or it ends the log
  int64_t commits_behind = 0;
};

absl::StatusOr<Scan> ScanLog(int fd, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string header, ReadAt(fd, kLogHeaderBytes, 0, path));
  if (header.size() < kLogHeaderBytes) return Scan();
  Checksum checksum((Big(header, 0) & 1) != 0);
  checksum.Add(absl::string_view(header).substr(0, 24));
  const bool header_sound = (Big(header, 0) & ~1U) == kLogMagic && checksum.Is(header, 24);
  size_t page_bytes = Big(header, 8);
  if (!header_sound && (page_bytes < kMinPageBytes || page_bytes > kMaxPageBytes)) {
    page_bytes = 4096;
  }
  std::string salt = header.substr(16, 8);
  Scan scan;
  bool sound = header_sound;
  if (!header_sound) scan.damaged_at = kLogHeaderBytes;
  const size_t frame_bytes = kFrameHeaderBytes + page_bytes;
  for (uint64_t at = kLogHeaderBytes;; at += frame_bytes) {
    MUSTER_ASSIGN_OR_RETURN(const std::string frame, ReadAt(fd, frame_bytes, at, path));
    if (frame.size() < frame_bytes) return scan;
    if (!header_sound && at == kLogHeaderBytes) salt = frame.substr(8, 8);
    const bool of_this_log = frame.compare(8, 8, salt) == 0;
    if (sound) {
      checksum.Add(absl::string_view(frame).substr(0, 8));
      checksum.Add(absl::string_view(frame).substr(kFrameHeaderBytes));
      sound = of_this_log && checksum.Is(frame, 16);
      if (!sound) scan.damaged_at = at;
    }
    if (!sound && of_this_log && Big(frame, 4) != 0) ++scan.commits_behind;
  }
}

}  // namespace

absl::StatusOr<int64_t> CommitsBehindDamage(const std::string& path) {
  const os::FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT) return 0;
  if (file.get() < 0) return os::FileError(errno, "opening", path);
  MUSTER_ASSIGN_OR_RETURN(const Scan first, ScanLog(file.get(), path));
  if (first.commits_behind < 2) return 0;
  // A frame that was not whole yet when it was read is whole by now: its writer has committed
  // behind it.
  MUSTER_ASSIGN_OR_RETURN(const Scan again, ScanLog(file.get(), path));
  return again.damaged_at == first.damaged_at && again.commits_behind >= 2 ? again.commits_behind
                                                                           : 0;
}

absl::Status CheckLogOf(const std::string& report) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t lost, CommitsBehindDamage(report + "-wal"));
  if (lost == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("its write-ahead log is damaged, with ", lost,
                   " commits behind the damage: `muster check --repair` mends the report"));
}

}  // namespace muster::report::sqlite
