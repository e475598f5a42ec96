#include "model/ir/operator_schema.h"

namespace dcsim {
namespace {

std::string_view Trim(std::string_view text) {
  while (text.starts_with(' ')) {
    text.remove_prefix(1);
  }
  while (text.ends_with(' ')) {
    text.remove_suffix(1);
  }
  return text;
}

/// Splits at commas outside brackets and quotes.
std::vector<std::string_view> SplitFields(std::string_view text) {
  std::vector<std::string_view> fields;
  int depth = 0;
  bool quoted = false;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '\'' || c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '(' || c == '[')) {
      ++depth;
    } else if (!quoted && (c == ')' || c == ']')) {
      --depth;
    } else if (c == ',' && (i == text.size() || (depth == 0 && !quoted))) {
      const auto field = Trim(text.substr(start, i - start));
      if (!field.empty()) {
        fields.push_back(field);
      }
      start = i + 1;
    }
  }
  return fields;
}

/// "Tensor(a!)[] self=None" -> {Tensor[], self, aliases, writes}. The type ends at the first space
/// outside brackets.
SchemaField ReadField(std::string_view text) {
  SchemaField field;
  std::size_t i = 0;
  int depth = 0;
  for (; i < text.size() && (depth > 0 || text[i] != ' '); ++i) {
    const char c = text[i];
    depth += c == '(' ? 1 : 0;
    field.aliases = field.aliases || depth > 0;
    if (depth == 0) {
      field.type += c;
    } else if (c == '!') {
      field.writes = true;
    }
    depth -= c == ')' ? 1 : 0;
  }
  const auto rest = Trim(text.substr(i));
  field.name = rest.substr(0, rest.find('='));
  return field;
}

/// Position of the bracket that closes the one at `open`, or npos.
std::size_t ClosingBracket(std::string_view text, std::size_t open) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '\'' || text[i] == '"') {
      quoted = !quoted;
    }
    if (quoted) {
      continue;
    }
    depth += text[i] == '(' ? 1 : 0;
    depth -= text[i] == ')' ? 1 : 0;
    if (depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::vector<SchemaField> ReadReturns(std::string_view text) {
  text = Trim(text);
  const bool several = text.starts_with('(') && ClosingBracket(text, 0) == text.size() - 1;
  if (!several) {
    return {ReadField(text)};
  }
  std::vector<SchemaField> returns;
  for (const auto field : SplitFields(text.substr(1, text.size() - 2))) {
    returns.push_back(ReadField(field));
  }
  return returns;
}

}  // namespace

std::optional<OperatorSchema> FindSchema(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t close = ClosingBracket(text, open);
  if (close == std::string_view::npos || !text.substr(close + 1).starts_with(" -> ")) {
    return std::nullopt;
  }
  OperatorSchema schema;
  const std::string_view name = text.substr(0, open);
  const std::size_t dot = name.find('.');
  schema.name = name.substr(0, dot);
  schema.overload = dot == std::string_view::npos ? "" : name.substr(dot + 1);
  const std::size_t colons = schema.name.find("::");
  if (colons == std::string::npos || colons == 0 || colons + 2 == schema.name.size()) {
    return std::nullopt;
  }
  for (const auto field : SplitFields(text.substr(open + 1, close - open - 1))) {
    if (field != "*") {
      schema.arguments.push_back(ReadField(field));
    }
  }
  schema.returns = ReadReturns(text.substr(close + 5));
  return schema;
}

}  // namespace dcsim
