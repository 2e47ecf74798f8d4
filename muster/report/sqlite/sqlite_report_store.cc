// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/sqlite_report_store.h"

#include <sys/stat.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/group_commit.h"
#include "muster/report/sqlite/identity.h"
#include "muster/report/sqlite/retry_claims.h"
#include "muster/report/sqlite/schema.h"
#include "muster/report/sqlite/sqlite_report_reader.h"
#include "muster/report/sqlite/sqlite_report_writer.h"
#include "muster/report/sqlite/write_ahead_log.h"
#include "muster/telemetry/catalogue.h"

namespace muster::report::sqlite {

namespace {

using FileId = std::pair<dev_t, ino_t>;

// nullopt: there is none, or it cannot be told.
std::optional<FileId> FileAt(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileId(info.st_dev, info.st_ino);
}

std::unique_ptr<telemetry::Reading> ReadLogSize(const std::string& path,
                                                telemetry::Registry* metrics) {
  return telemetry::ReadAtScrape(metrics, "report", {telemetry::kSqliteWal.entry()},
                                 [log = path + "-wal"](telemetry::Samples* samples) {
                                   struct stat info;
                                   const bool is_there = stat(log.c_str(), &info) == 0;
                                   samples->Set(telemetry::kSqliteWal, {},
                                                is_there ? static_cast<double>(info.st_size) : 0);
                                   return absl::OkStatus();
                                 });
}

class SqliteReportStore final : public report::ReportStore {
 public:
  SqliteReportStore(std::string path, const SqliteOptions& options,
                    std::unique_ptr<SqliteReportWriter> writer)
      : path_(std::move(path)),
        file_(FileAt(path_)),
        clock_(options.clock),
        epoch_(writer == nullptr ? 0 : writer->epoch()),
        writes_(writer != nullptr),
        writer_(std::move(writer)),
        changes_([this](absl::Span<GroupCommit::Member* const> group) { MakeTogether(group); }),
        readers_(path_),
        commit_seconds_(
            telemetry::Histograms<0>(options.metrics, telemetry::kSqliteCommit).With({})),
        log_size_(ReadLogSize(path_, options.metrics)) {}

  uint64_t epoch() const override { return epoch_; }

  absl::StatusOr<report::Progress> RegisterBatch(const report::BatchShape& shape) override {
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    absl::StatusOr<report::Progress> progress;
    const absl::Status registered = changes_.Run([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      progress = writer_->RegisterBatch(shape);
      return progress.status();
    });
    if (!registered.ok()) return base::Annotate(registered, path_);
    return progress;
  }

  absl::StatusOr<report::CommitSummary> Commit(const report::CommitRequest& request) override {
    const absl::Time now = clock_->Now();
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    const absl::Duration began = clock_->Monotonic();
    absl::StatusOr<report::CommitSummary> summary = writer_->Commit(request, now);
    if (summary.ok()) commit_seconds_.Observe(clock_->Monotonic() - began);
    if (!summary.ok()) return base::Annotate(summary.status(), path_);
    return summary;
  }

  absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) override {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    const absl::Status reopened = writer_->ReopenDeadLettered(batch, items);
    // An item that is retried is the caller's matter, not that of the file.
    if (absl::IsFailedPrecondition(reopened)) return reopened;
    return base::Annotate(reopened, path_);
  }

  absl::Status CancelBatch(uint64_t batch, const report::Cancellation& cancellation) override {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    return base::Annotate(writer_->CancelBatch(batch, cancellation), path_);
  }

  absl::StatusOr<report::RetryClaims> ClaimRejections(uint64_t batch,
                                                      const report::RetrySelection& which,
                                                      int64_t max) override {
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    auto connection = Connection::Open(path_, OpenMode::kReadOnly);
    if (absl::IsNotFound(connection.status())) return NotInPlace(connection.status().message());
    MUSTER_RETURN_IF_ERROR(connection.status());
    MUSTER_ASSIGN_OR_RETURN(const std::vector<report::RejectionPosition> found,
                            FindSelected(connection->get(), batch, which, max));
    const absl::Time now = clock_->Now();
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    absl::StatusOr<report::RetryClaims> claimed =
        writer_->ClaimRejections(batch, which, found, max, now);
    // What the batch has rejected is the caller's matter, not that of the file.
    if (claimed.ok() || absl::IsNotFound(claimed.status()) ||
        absl::IsFailedPrecondition(claimed.status())) {
      return claimed;
    }
    return base::Annotate(claimed.status(), path_);
  }

  absl::StatusOr<int64_t> RecordRetry(uint64_t batch, int64_t retry,
                                      absl::Span<const report::RetriedTransaction> transactions,
                                      uint64_t retried_in) override {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    absl::StatusOr<int64_t> left = writer_->RecordRetry(batch, retry, transactions, retried_in);
    if (!left.ok()) return base::Annotate(left.status(), path_);
    return left;
  }

  absl::StatusOr<bool> ForgetBatch(uint64_t batch, int64_t max_rows) override {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    absl::StatusOr<bool> done = writer_->ForgetBatch(batch, max_rows);
    if (!done.ok()) return base::Annotate(done.status(), path_);
    return done;
  }

  absl::Status ForgetJob(const std::string& job) override {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    return base::Annotate(writer_->ForgetJob(job), path_);
  }

  absl::StatusOr<report::Receipt> Complete(const report::BatchFacts& facts) override {
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    absl::StatusOr<report::Receipt> receipt;
    const absl::Status issued = changes_.Run([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      receipt = writer_->Complete(facts);
      return receipt.status();
    });
    if (!issued.ok()) return base::Annotate(issued, path_);
    return receipt;
  }

  absl::StatusOr<std::unique_ptr<report::ReportReader>> Read() override {
    // Without a writer, a connection may have been opened as to a file that never changes. Of a
    // file that was moved aside, none may be read on.
    const bool is_pooled = writes_ && FileAt(path_) == file_;
    if (!is_pooled) readers_.Clear();
    auto reader = is_pooled ? readers_.Read() : OpenReader(path_);
    // NotFound would say that what the caller asks for never was. This report was there: it was
    // moved aside, or is being put back.
    if (absl::IsNotFound(reader.status())) return NotInPlace(reader.status().message());
    return reader;
  }

 private:
  void MakeTogether(absl::Span<GroupCommit::Member* const> group) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    const absl::Status writable = CheckWritable();
    if (writable.ok()) return writer_->MakeTogether(group);
    for (GroupCommit::Member* const member : group) member->result = writable;
  }

  // Before each change. In a file that was moved aside the writer would go on, and readers would
  // not find what it wrote.
  absl::Status CheckWritable() const {
    if (writer_ == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat("report ", path_, " is open read-only"));
    }
    if (FileAt(path_) == file_) return absl::OkStatus();
    return NotInPlace(absl::StrCat("report ", path_, " is another file or none"));
  }

  static absl::Status NotInPlace(absl::string_view what) {
    return absl::UnavailableError(absl::StrCat(what, "; it was there when it was opened"));
  }

  const std::string path_;
  const std::optional<FileId> file_;
  base::Clock* const clock_;  // not owned
  const uint64_t epoch_;
  const bool writes_;
  base::Mutex mu_;
  const std::unique_ptr<SqliteReportWriter> writer_
      ABSL_PT_GUARDED_BY(mu_);  // nullptr when read-only
  GroupCommit changes_;         // of batches that begin and end: there may be many at a time
  ReaderPool readers_;
  const telemetry::Histogram commit_seconds_;
  const std::unique_ptr<telemetry::Reading> log_size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<report::ReportStore>> OpenSqliteReport(
    const std::string& path, const SqliteOptions& options) {
  std::unique_ptr<SqliteReportWriter> writer;
  if (options.read_only) {
    MUSTER_RETURN_IF_ERROR(base::Annotate(CheckLogOf(path), absl::StrCat("report ", path)));
    // Says at once what is wrong with the file.
    MUSTER_RETURN_IF_ERROR(OpenReader(path).status());
  } else {
    absl::StatusOr<std::unique_ptr<SqliteReportWriter>> opened =
        SqliteReportWriter::Open(path, options);
    if (!opened.ok()) return base::Annotate(opened.status(), absl::StrCat("report ", path));
    writer = *std::move(opened);
  }
  return std::make_unique<SqliteReportStore>(path, options, std::move(writer));
}

absl::StatusOr<report::ReportIdentity> ReadIdentity(const std::string& path) {
  absl::StatusOr<report::ReportIdentity> identity =
      [&path]() -> absl::StatusOr<report::ReportIdentity> {
    MUSTER_RETURN_IF_ERROR(CheckLogOf(path));
    MUSTER_ASSIGN_OR_RETURN(const auto connection, Connection::Open(path, OpenMode::kReadOnly));
    MUSTER_RETURN_IF_ERROR(CheckSchema(connection.get()));
    return LoadIdentity(connection.get());
  }();
  if (!identity.ok()) return base::Annotate(identity.status(), absl::StrCat("report ", path));
  return identity;
}

}  // namespace muster::report::sqlite
