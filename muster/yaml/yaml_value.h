// SPDX-License-Identifier: Apache-2.0

// YamlValue: one value of a file, read into C++ strictly. Every mistake goes to Problems, and the
// target keeps its default; so does the target of an optional value that is absent.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/yaml/problems.h"

namespace muster::yaml {

// Cheap to copy. Not thread-safe.
class YamlValue {
 public:
  static constexpr size_t kAnyNumber = ~size_t{0};

  // `path` names the value for people: "groups[0].measures". `problems` is not owned.
  YamlValue(const YAML::Node& node, std::string path, Problems* problems);

  bool present() const { return present_; }
  const std::string& path() const { return path_; }
  // Where it begins.
  Place place() const;
  bool IsMap() const { return present_ && node_.IsMap(); }
  bool IsList() const { return present_ && node_.IsSequence(); }
  bool IsNumber() const;
  // The text of a scalar of any type; "" otherwise.
  std::string Raw() const;

  // "PATH: MESSAGE".
  void Problem(absl::string_view message) const;
  // MESSAGE alone, which names the place itself.
  void BareProblem(absl::string_view message) const;
  // "PATH: must be WHAT, not VALUE".
  void MustBe(absl::string_view what) const;

  // Each answers whether it set `*out`.
  bool ReadText(std::string* out) const;  // at most kMaxTextBytes, not empty, no control characters
  bool ReadTextOrEmpty(std::string* out) const;  // the same, or "", in quotes
  bool ReadName(std::string* out) const;         // [a-z][a-z0-9_-]*, at most kMaxNameBytes
  bool ReadBool(bool* out) const;
  bool ReadInt(int64_t* out, int64_t min, int64_t max) const;
  bool ReadInt(int* out, int64_t min, int64_t max) const;  // of bounds that fit an int
  bool ReadBytes(int64_t* out, int64_t min, int64_t max) const;
  bool ReadDuration(absl::Duration* out, absl::Duration min, absl::Duration max) const;

  // One of `words`: `*out` becomes its place among them, or the enumerator of that number.
  template <typename Place>
  bool ReadWord(const std::vector<std::string>& words, Place* out) const {
    const std::optional<size_t> place = PlaceAmong(words);
    if (place.has_value()) *out = static_cast<Place>(*place);
    return place.has_value();
  }

  // The elements of a list of `min` to `max`; a problem and nothing for anything else.
  std::vector<YamlValue> List(size_t min, size_t max) const;
  // The entries of a map of `min` to `max`, keys being names of the user's; likewise.
  std::vector<std::pair<YamlValue, YamlValue>> Entries(size_t min, size_t max) const;

 private:
  friend class YamlMap;

  YamlValue AbsentEntry(const std::string& key) const;
  std::string Shown() const;
  std::optional<size_t> PlaceAmong(const std::vector<std::string>& words) const;
  bool IsPlain() const;

  YAML::Node node_;
  std::string path_;
  Problems* problems_;
  bool present_;
};

// A map with fixed keys. Reports unknown keys and keys that stand there twice.
class YamlMap {
 public:
  YamlMap(const YamlValue& value, const std::vector<std::string>& keys);

  YamlValue Optional(const std::string& key) const;
  // Reports a missing key.
  YamlValue Required(const std::string& key) const;

 private:
  const YamlValue value_;
  std::vector<std::pair<std::string, YamlValue>> entries_;
};

// Reads the one YAML document of a text. A problem and an empty node: more than `max_bytes`, not
// UTF-8, not YAML, several documents, none. Never throws.
YAML::Node ReadDocument(absl::string_view text, size_t max_bytes, Problems* problems);

// Where the value begins that `keys` lead to, each within the one before it, in a text that
// ReadDocument takes. The beginning of the text where they lead to none. Never throws.
Place PlaceIn(absl::string_view text, std::initializer_list<const char*> keys);

}  // namespace muster::yaml
