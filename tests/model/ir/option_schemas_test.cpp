// The JSON schemas of plans and spaces list the options of plans.

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "model/ir/plan_options.h"
#include "tests/support/source_folder.h"

namespace dcsim {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// `text` with these properties, a line each, between the `begin` and the next `end`.
std::string WithProperties(const std::string& text,
                           const std::string& begin,
                           const std::string& end,
                           const Json& properties) {
  const std::size_t from = text.find(begin) + begin.size();
  const std::size_t to = text.find(end, from);
  const std::string indent(end.find('}') + 1, ' ');
  std::string lines;
  for (const auto& [key, schema] : properties.items()) {
    lines += (lines.empty() ? "\n" : ",\n") + indent + Json(key).dump() + ": " + schema.dump();
  }
  return text.substr(0, from) + lines + text.substr(to);
}

/// DCSIM_UPDATE_DOCS=1 writes the schema.
void ExpectProperties(const std::string& name,
                      const std::string& begin,
                      const std::string& end,
                      const Json& properties) {
  const std::string path = SourceFolder() + "/docs/reference/schemas/" + name + ".schema.json";
  const std::string expected = WithProperties(ReadText(path), begin, end, properties);
  if (std::getenv("DCSIM_UPDATE_DOCS") != nullptr) {
    std::ofstream(path) << expected;
  }
  EXPECT_EQ(ReadText(path), expected);
}

TEST(OptionSchemasTest, PlansHaveAllOptions) {
  Json properties = Json::object();
  for (const PlanOption& option : PlanOptions()) {
    properties[option.key] = option.ValueSchema();
  }
  ExpectProperties("plan-options", "\"properties\": {", "\n  }", properties);
}

// What is trained has one value, other options may have several.
TEST(OptionSchemasTest, SpacesHaveAllButTheBackend) {
  Json properties = Json::object();
  for (const PlanOption& option : PlanOptions()) {
    const Json one = {{"$ref", "plan-options.schema.json#/properties/" + std::string(option.key)}};
    const Json several = {{"type", "array"}, {"minItems", 1}, {"items", one}};
    if (option.key != "backend") {
      properties[option.key] = option.trains ? one : Json{{"anyOf", {one, several}}};
    }
  }
  ExpectProperties("space", "\"required\": [\"stage\"],\n      \"properties\": {", "\n      }",
                   properties);
}

}  // namespace
}  // namespace dcsim
