// Answers as text, so that an engine's and a model's can be compared and read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::rocksdb {

// The engine's message ids and what the model calls these messages: the bodies that they were put
// with.
class Names {
 public:
  // Does nothing when either of them is known.
  void Bind(const std::string& id, const std::string& name);

  // The name of an engine's id, or of a model's. The id of a put whose answer was lost is not known
  // until its message is seen.
  std::string OfEngine(const std::string& id) const;
  std::string OfModel(const std::string& name) const;
  // Of a name that is bound.
  std::string IdOf(const std::string& name) const { return ids_.at(name); }

 private:
  std::map<std::string, std::string> names_;  // by id
  std::map<std::string, std::string> ids_;    // by name
};

// Leaves receipts out; tells times from `start` on. What went well begins with "ok".
class Show {
 public:
  enum Whose { kEngine, kModel };
  // `names` is not owned.
  Show(const Names* names, absl::Time start, Whose whose)
      : names_(names), start_(start), whose_(whose) {}

  std::string operator()(const absl::Status& status) const;
  std::string operator()(int64_t count) const { return absl::StrCat("ok ", count); }
  std::string operator()(const queue::Metadata& metadata) const;
  std::string operator()(const queue::PutResult& result) const;
  std::string operator()(const queue::Message& message) const;
  std::string operator()(const queue::UpdateResult& result) const;
  std::string operator()(const queue::PoisonMessage& message) const;
  std::string operator()(const queue::QueueStats& stats) const;
  template <typename T>
  std::string operator()(const absl::StatusOr<T>& value) const {
    return value.ok() ? (*this)(*value) : (*this)(value.status());
  }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    const auto show = [this](std::string* out, const T& value) { out->append((*this)(value)); };
    return absl::StrCat("[", absl::StrJoin(values, "; ", show), "]");
  }

 private:
  std::string Name(const std::string& id) const;
  std::string Time(absl::Time time) const;

  const Names* const names_;  // not owned
  const absl::Time start_;
  const Whose whose_;
};

}  // namespace muster::queue::rocksdb
