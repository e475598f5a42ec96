#include "tools/common/record_command.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "model/base/text.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

/// Splits what Python's shlex.join has joined: blanks between words, quotes around what is no plain
/// word.
Words SplitWords(const std::string& command) {
  Words words;
  bool inside = false;
  char quote = 0;
  for (const char c : command) {
    const bool is_quote = c == '\'' || c == '"';
    if (quote == 0 && c == ' ') {
      inside = false;
      continue;
    }
    if (!inside) {
      words.emplace_back();
      inside = true;
    }
    if (is_quote && (quote == 0 || quote == c)) {
      quote = quote == 0 ? c : '\0';
    } else {
      words.back() += c;
    }
  }
  return words;
}

/// A word as a shell takes it; the same characters are plain as in Python's shlex.quote.
std::string Quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  std::string text = "'";
  for (const char c : word) {
    text += c == '\'' ? "'\"'\"'" : std::string(1, c);
  }
  return text + "'";
}

Words QuotedWords(Words words) {
  std::transform(words.begin(), words.end(), words.begin(), Quoted);
  return words;
}

/// Place of an option that has a value; the end where there is none.
Words::iterator FindOption(Words& words, const std::string& option) {
  const auto found = std::find(words.begin(), words.end(), option);
  return found == words.end() || found + 1 == words.end() ? words.end() : found;
}

void SetOption(const std::string& option, const std::string& value, Words& words) {
  if (words.empty()) {
    return;  // nobody knows the command
  }
  const auto found = FindOption(words, option);
  if (found != words.end()) {
    *(found + 1) = value;
    return;
  }
  words.insert(FindOption(words, "-o"), {option, value});
}

}  // namespace

RecordCommand::RecordCommand(const Graph& graph)
    : words_(SplitWords(graph.notes.command)),
      name_(graph.name) {
  if (std::find(words_.begin(), words_.end(), "dcrecord") == words_.end()) {
    words_.clear();  // a job that was recorded as it ran
  }
}

RecordCommand& RecordCommand::Set(const std::string& option, const std::string& value) {
  SetOption(option, value, words_);
  return *this;
}

RecordCommand& RecordCommand::SetFlag(const std::string& flag) {
  if (!words_.empty() && std::find(words_.begin(), words_.end(), flag) == words_.end()) {
    words_.insert(FindOption(words_, "-o"), flag);
  }
  return *this;
}

RecordCommand& RecordCommand::Remove(const std::string& option) {
  for (auto found = FindOption(words_, option); found != words_.end();
       found = FindOption(words_, option)) {
    words_.erase(found, found + 2);
  }
  return *this;
}

RecordCommand& RecordCommand::RemoveFlag(const std::string& flag) {
  words_.erase(std::remove(words_.begin(), words_.end(), flag), words_.end());
  return *this;
}

RecordCommand& RecordCommand::NameSize(const std::string& key,
                                       std::int64_t own,
                                       std::int64_t asked) {
  if (own != asked) {
    const std::string old = "-" + key + std::to_string(own);
    const std::size_t at = name_.rfind(old);
    const bool named = at != std::string::npos;
    name_.replace(named ? at : name_.size(), named ? old.size() : 0,
                  "-" + key + std::to_string(asked));
  }
  return *this;
}

RecordCommand& RecordCommand::NameSuffix(const std::string& suffix) {
  if (!name_.ends_with(suffix)) {
    name_ += suffix;
  }
  return *this;
}

std::vector<std::string> RecordCommand::Words(const std::string& folder) const {
  if (words_.empty()) {
    return {};
  }
  std::vector<std::string> words = words_;
  SetOption("--name", name_, words);
  SetOption("-o", (fs::path(folder) / name_).lexically_normal().string(), words);
  return words;
}

std::string RecordCommand::Text(const std::string& folder) const {
  return Join(QuotedWords(Words(folder)), " ");
}

std::string RecordCommand::TextInto(const std::string& folder) const {
  std::vector<std::string> words = words_;
  SetOption("--name", name_, words);
  SetOption("-o", folder, words);
  return Join(QuotedWords(std::move(words)), " ");
}

std::string RecordCommand::Text() const {
  std::vector<std::string> words = words_;
  const auto place = FindOption(words, "-o");
  const fs::path clean = fs::path(place == words.end() ? name_ : *(place + 1)).lexically_normal();
  const fs::path named = clean.filename().empty() ? clean.parent_path() : clean;
  return Text(named.parent_path().string());
}

}  // namespace dcsim
