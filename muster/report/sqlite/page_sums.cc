// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/page_sums.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "muster/base/check.h"
#include "muster/base/fingerprint.h"

namespace muster::report::sqlite {
namespace {

constexpr absl::string_view kMagic("SQLite format 3", 16);  // with its NUL
// Places in the header.
constexpr size_t kWriteVersion = 18;
constexpr size_t kReadVersion = 19;
constexpr size_t kReservedBytes = 20;
constexpr size_t kUserVersion = 60;
constexpr size_t kApplication = 68;

constexpr char kJournal = 1;       // the versions of a file that is being made
constexpr char kWal = 2;           // the write version of a file with a write-ahead log
constexpr char kForeignReads = 3;  // SQLite reads a file of a later write version, and no more

// Our file controls.
constexpr int kDamagedPage = 0x6d757301;
constexpr int kWritesSums = 0x6d757302;

using Page = std::array<char, kPageBytes>;

uint64_t NumberOf(absl::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

absl::string_view SumOf(absl::string_view page) { return page.substr(kPageBytes - kSumBytes); }

// Never 0, which stands for "no checksum". Of page 1 without what programs without the VFS may
// change: `.backup` writes the counters into its copy, and a shell the two versions.
uint64_t Sum(absl::string_view page, int64_t number) {
  uint64_t sum = 0;
  if (number == 1) {
    Page copy;
    memcpy(copy.data(), page.data(), kPageBytes);
    copy[kWriteVersion] = copy[kReadVersion] = 0;
    memset(&copy[24], 0, 4);  // the counter of changes
    memset(&copy[40], 0, 4);  // the counter of the schema's changes
    memset(&copy[92], 0, 8);  // which SQLite wrote it, at which change
    sum = base::Fingerprint({copy.data(), kPageBytes - kSumBytes}).high;
  } else {
    sum = base::Fingerprint(page.substr(0, kPageBytes - kSumBytes)).high;
  }
  // A page at another page's place is damage, too.
  sum ^= static_cast<uint64_t>(number) * 0x9e3779b97f4a7c15;
  return sum == 0 ? 1 : sum;
}

void PutSum(int64_t number, Page* page) {
  uint64_t sum = Sum({page->data(), kPageBytes}, number);
  for (size_t i = kPageBytes; i-- > kPageBytes - kSumBytes; sum >>= 8) {
    (*page)[i] = static_cast<char>(sum);
  }
}

// SQLite allocates it, with room for the real file behind it.
struct SumFile : sqlite3_file {
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }

  bool known = false;  // the members below are those of the file
  bool verifies = false;
  bool sums = false;  // what is written gets a checksum
  int64_t damaged_page = 0;
};

SumFile* Sums(sqlite3_file* file) { return static_cast<SumFile*>(file); }

void LearnFrom(absl::string_view header, SumFile* file) {
  file->known = true;
  file->verifies = HasPageSums(header);
  file->sums = header[kReservedBytes] == kSumBytes;
}

// A file that is being made has no header yet.
void Learn(SumFile* file) {
  if (file->known) return;
  std::array<char, kHeaderBytes> header;
  if (file->real()->pMethods->xRead(file->real(), header.data(), kHeaderBytes, 0) == SQLITE_OK) {
    LearnFrom({header.data(), header.size()}, file);
  }
}

int ReadPage(SumFile* file, int64_t number, char* page) {
  const int code =
      file->real()->pMethods->xRead(file->real(), page, kPageBytes, (number - 1) * kPageBytes);
  if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) return code;
  const absl::string_view bytes(page, kPageBytes);
  const bool is_cut_short =
      code == SQLITE_IOERR_SHORT_READ && bytes.find_first_not_of('\0') != absl::string_view::npos;
  if (is_cut_short || CheckPage(bytes, number) == PageState::kDamaged) {
    file->damaged_page = number;
    return SQLITE_IOERR_DATA;
  }
  memset(page + kPageBytes - kSumBytes, 0, kSumBytes);
  // No checksum covers the two versions, so whatever else they say is damage that does no harm.
  for (const size_t version : {kWriteVersion, kReadVersion}) {
    if (number == 1 && page[version] != kJournal) page[version] = kWal;
  }
  return code;
}

int Read(sqlite3_file* handle, void* out, int bytes, sqlite3_int64 offset) {
  SumFile* const file = Sums(handle);
  // SQLite looks at the header before it has a lock, perhaps while another process writes it. It
  // reads the whole page before it trusts what it saw.
  const bool is_header = offset + bytes <= kHeaderBytes;
  if (!is_header) Learn(file);
  if (is_header || !file->verifies) {
    return file->real()->pMethods->xRead(file->real(), out, bytes, offset);
  }
  if (bytes == kPageBytes && offset % kPageBytes == 0) {
    return ReadPage(file, offset / kPageBytes + 1, static_cast<char*>(out));
  }
  // A part of a page, as newer SQLites read of a long value; or damage says that pages have another
  // size.
  Page page;
  int outcome = SQLITE_OK;
  const int64_t end = offset + bytes;
  for (int64_t at = offset; at < end;) {
    const int code = ReadPage(file, at / kPageBytes + 1, page.data());
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) return code;
    if (code != SQLITE_OK) outcome = code;
    const int64_t within = at % kPageBytes;
    const int64_t take = std::min(kPageBytes - within, end - at);
    memcpy(static_cast<char*>(out) + (at - offset), page.data() + within,
           static_cast<size_t>(take));
    at += take;
  }
  return outcome;
}

int Write(sqlite3_file* handle, const void* data, int bytes, sqlite3_int64 offset) {
  SumFile* const file = Sums(handle);
  if (offset == 0 && bytes >= kHeaderBytes) {
    LearnFrom({static_cast<const char*>(data), kHeaderBytes}, file);
  }
  Learn(file);
  if (!file->sums || bytes != kPageBytes || offset % kPageBytes != 0) {
    return file->real()->pMethods->xWrite(file->real(), data, bytes, offset);
  }
  Page page;  // SQLite's own copy stays as it is
  memcpy(page.data(), data, kPageBytes);
  if (offset == 0 && page[kWriteVersion] == kWal) page[kWriteVersion] = kForeignReads;
  PutSum(offset / kPageBytes + 1, &page);
  return file->real()->pMethods->xWrite(file->real(), page.data(), bytes, offset);
}

int FileControl(sqlite3_file* handle, int operation, void* argument) {
  SumFile* const file = Sums(handle);
  if (operation == kDamagedPage) {
    *static_cast<int64_t*>(argument) = file->damaged_page;
    return SQLITE_OK;
  }
  if (operation == kWritesSums) {
    Learn(file);
    *static_cast<bool*>(argument) = file->sums;
    return SQLITE_OK;
  }
  return file->real()->pMethods->xFileControl(file->real(), operation, argument);
}

// Passes a method of a file on to the real file.
template <auto Method>
struct PassOn;
template <typename... Arguments, int (*sqlite3_io_methods::*Method)(sqlite3_file*, Arguments...)>
struct PassOn<Method> {
  static int Call(sqlite3_file* handle, Arguments... arguments) {
    sqlite3_file* const real = Sums(handle)->real();
    return (real->pMethods->*Method)(real, arguments...);
  }
};

void ShmBarrier(sqlite3_file* handle) {
  sqlite3_file* const real = Sums(handle)->real();
  real->pMethods->xShmBarrier(real);
}

using Methods = sqlite3_io_methods;

// Version 2: SQLite maps no pages into memory, where they could not be verified.
constexpr Methods kMethods = {
    .iVersion = 2,
    .xClose = PassOn<&Methods::xClose>::Call,
    .xRead = Read,
    .xWrite = Write,
    .xTruncate = PassOn<&Methods::xTruncate>::Call,
    .xSync = PassOn<&Methods::xSync>::Call,
    .xFileSize = PassOn<&Methods::xFileSize>::Call,
    .xLock = PassOn<&Methods::xLock>::Call,
    .xUnlock = PassOn<&Methods::xUnlock>::Call,
    .xCheckReservedLock = PassOn<&Methods::xCheckReservedLock>::Call,
    .xFileControl = FileControl,
    .xSectorSize = PassOn<&Methods::xSectorSize>::Call,
    .xDeviceCharacteristics = PassOn<&Methods::xDeviceCharacteristics>::Call,
    .xShmMap = PassOn<&Methods::xShmMap>::Call,
    .xShmLock = PassOn<&Methods::xShmLock>::Call,
    .xShmBarrier = ShmBarrier,
    .xShmUnmap = PassOn<&Methods::xShmUnmap>::Call,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

sqlite3_vfs* RealVfs(sqlite3_vfs* vfs) { return static_cast<sqlite3_vfs*>(vfs->pAppData); }

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* handle, int flags, int* out_flags) {
  sqlite3_vfs* const real = RealVfs(vfs);
  // Logs and journals have checksums of their own, and a temporary file ends with its process.
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0) return real->xOpen(real, name, handle, flags, out_flags);
  SumFile* const file = new (handle) SumFile();
  file->real()->pMethods = nullptr;
  const int code = real->xOpen(real, name, file->real(), flags, out_flags);
  // SQLite closes what has methods.
  file->pMethods = file->real()->pMethods == nullptr ? nullptr : &kMethods;
  return code;
}

// Passes a method of the VFS on to the real one.
template <auto Method>
struct PassVfsOn;
template <typename Result, typename... Arguments,
          Result (*sqlite3_vfs::*Method)(sqlite3_vfs*, Arguments...)>
struct PassVfsOn<Method> {
  static Result Call(sqlite3_vfs* vfs, Arguments... arguments) {
    sqlite3_vfs* const real = RealVfs(vfs);
    return (real->*Method)(real, arguments...);
  }
};

using Vfs = sqlite3_vfs;

// `real` is SQLite's default, which lives as long as the process; so does the result.
sqlite3_vfs* RegisterOver(sqlite3_vfs* real) {
  MUSTER_CHECK(real != nullptr && real->iVersion >= 2, "SQLite's default VFS");
  static_assert(sizeof(SumFile) % 8 == 0, "the real file follows it, aligned as SQLite does");
  static sqlite3_vfs vfs = {};
  vfs.iVersion = 2;
  vfs.szOsFile = static_cast<int>(sizeof(SumFile)) + real->szOsFile;
  vfs.mxPathname = real->mxPathname;
  vfs.zName = "muster-page-sums";
  vfs.pAppData = real;
  vfs.xOpen = Open;
  vfs.xDelete = PassVfsOn<&Vfs::xDelete>::Call;
  vfs.xAccess = PassVfsOn<&Vfs::xAccess>::Call;
  vfs.xFullPathname = PassVfsOn<&Vfs::xFullPathname>::Call;
  vfs.xDlOpen = PassVfsOn<&Vfs::xDlOpen>::Call;
  vfs.xDlError = [](Vfs* self, int bytes, char* text) {
    RealVfs(self)->xDlError(RealVfs(self), bytes, text);
  };
  vfs.xDlSym = [](Vfs* self, void* library, const char* symbol) {
    return RealVfs(self)->xDlSym(RealVfs(self), library, symbol);
  };
  vfs.xDlClose = [](Vfs* self, void* library) { RealVfs(self)->xDlClose(RealVfs(self), library); };
  vfs.xRandomness = PassVfsOn<&Vfs::xRandomness>::Call;
  vfs.xSleep = PassVfsOn<&Vfs::xSleep>::Call;
  vfs.xCurrentTime = PassVfsOn<&Vfs::xCurrentTime>::Call;
  vfs.xGetLastError = PassVfsOn<&Vfs::xGetLastError>::Call;
  vfs.xCurrentTimeInt64 = PassVfsOn<&Vfs::xCurrentTimeInt64>::Call;
  const int code = sqlite3_vfs_register(&vfs, /*makeDflt=*/0);
  MUSTER_CHECK(code == SQLITE_OK, "registering a VFS: ", sqlite3_errstr(code));
  return &vfs;
}

}  // namespace

const char* PageSumsVfs() {
  static const sqlite3_vfs* const vfs = RegisterOver(sqlite3_vfs_find(nullptr));
  return vfs->zName;
}

bool HasPageSums(absl::string_view header) {
  if (header.size() < kHeaderBytes) return false;
  if (header[kWriteVersion] == kForeignReads || header[kReservedBytes] == kSumBytes) return true;
  return NumberOf(header.substr(kApplication, 4)) == kApplicationId &&
         NumberOf(header.substr(kUserVersion, 4)) >= kFirstSummedVersion;
}

PageState CheckPage(absl::string_view page, int64_t number) {
  MUSTER_CHECK(page.size() == kPageBytes, "page ", number, " of ", page.size(), " bytes");
  const uint64_t stored = NumberOf(SumOf(page));
  // A page 1 that reserves no room has no checksum only because its header is damaged.
  const bool has_room = number != 1 || page[kReservedBytes] == kSumBytes;
  if (stored == 0 && has_room) return PageState::kUnsummed;
  return stored == Sum(page, number) ? PageState::kSound : PageState::kDamaged;
}

int64_t DamagedPageOf(sqlite3* database) {
  int64_t page = 0;
  return sqlite3_file_control(database, "main", kDamagedPage, &page) == SQLITE_OK ? page : 0;
}

bool WritesPageSums(sqlite3* database) {
  bool writes = false;
  return sqlite3_file_control(database, "main", kWritesSums, &writes) == SQLITE_OK && writes;
}

}  // namespace muster::report::sqlite
