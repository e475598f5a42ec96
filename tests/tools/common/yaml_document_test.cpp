#include "tools/common/yaml_document.h"

#include <string>

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "tests/support/error_text.h"

namespace dcsim {
namespace {

Json JsonOf(const std::string& text) {
  return YamlDocument::Parse(text, "f.yaml").json();
}

std::string ParseError(const std::string& text) {
  return ErrorText([&text] { YamlDocument::Parse(text, "f.yaml"); });
}

TEST(YamlDocumentTest, MapsListsAndScalarsBecomeJson) {
  EXPECT_EQ(JsonOf("a: {b: [1, two, true, ~]}\nc:\n"),
            Json::parse(R"({"a": {"b": [1, "two", true, null]}, "c": null})"));
}

TEST(YamlDocumentTest, KeysKeepTheirOrder) {
  EXPECT_EQ(JsonOf("z: 1\na: 2\n").dump(), R"({"z":1,"a":2})");
}

TEST(YamlDocumentTest, EmptyFileIsNull) {
  EXPECT_TRUE(JsonOf("").is_null());
  EXPECT_TRUE(JsonOf("# only a comment\n").is_null());
}

struct ScalarCase {
  std::string text;
  Json value;
};

class YamlScalarTest : public testing::TestWithParam<ScalarCase> {};

// One way to write a number: decimal. What YAML 1.1 reads as another number or as a boolean stays
// text.
TEST_P(YamlScalarTest, IsReadOneWay) {
  EXPECT_EQ(ParseYamlScalar(GetParam().text).dump(), GetParam().value.dump());
}

INSTANTIATE_TEST_SUITE_P(Scalars,
                         YamlScalarTest,
                         testing::Values(ScalarCase{"4", 4},
                                         ScalarCase{"-4", -4},
                                         ScalarCase{"0.5", 0.5},
                                         ScalarCase{"500e6", 500e6},
                                         ScalarCase{"true", true},
                                         ScalarCase{"false", false},
                                         ScalarCase{"null", nullptr},
                                         ScalarCase{"~", nullptr},
                                         ScalarCase{"", nullptr},
                                         ScalarCase{"yes", "yes"},
                                         ScalarCase{"True", "True"},
                                         ScalarCase{"0x10", "0x10"},
                                         ScalarCase{"1_000", "1_000"},
                                         ScalarCase{"80 GiB", "80 GiB"},
                                         ScalarCase{".inf", ".inf"},
                                         ScalarCase{"1e999", "1e999"},
                                         ScalarCase{"99999999999999999999", 1e20}));

TEST(YamlDocumentTest, QuotedScalarIsText) {
  EXPECT_EQ(JsonOf("a: \"4\"\nb: 'true'\n"), Json::parse(R"({"a": "4", "b": "true"})"));
}

// Places

std::string PlaceIn(const std::string& text, const std::string& pointer) {
  return YamlDocument::Parse(text, "f.yaml").locator()(pointer);
}

TEST(YamlDocumentTest, FieldStandsWhereItsKeyStands) {
  EXPECT_EQ(PlaceIn("a: 1\nb:\n    c: 2\n", "/b/c"), "f.yaml:3:5: b/c");
}

TEST(YamlDocumentTest, ListElementStandsWhereItBegins) {
  EXPECT_EQ(PlaceIn("a: [1, 22, 3]\n", "/a/1"), "f.yaml:1:8: a/1");
}

TEST(YamlDocumentTest, MissingFieldStandsWhereTheFieldAroundItStands) {
  EXPECT_EQ(PlaceIn("a: 1\nb:\n    c: 2\n", "/b/missing"), "f.yaml:2:1: b/missing");
}

TEST(YamlDocumentTest, FieldOfTheRootStandsAtTheStart) {
  EXPECT_EQ(PlaceIn("a: 1\n", "/missing"), "f.yaml:1:1: missing");
}

// What is no such file

TEST(YamlDocumentTest, BrokenTextIsLocated) {
  EXPECT_TRUE(ParseError("a: [1, 2\nb: 3\n").starts_with("f.yaml:2:2: not valid YAML: "));
}

TEST(YamlDocumentTest, KeyThatStandsTwiceIsAnError) {
  EXPECT_EQ(ParseError("a: 1\nb: 2\na: 3\n"), "f.yaml:3:1: key 'a' stands twice");
}

TEST(YamlDocumentTest, KeyThatIsNoNameIsAnError) {
  EXPECT_EQ(ParseError("? [a]\n: 1\n"), "f.yaml:1:3: expected a name as key");
}

class YamlTagTest : public testing::TestWithParam<const char*> {};

TEST_P(YamlTagTest, IsAnError) {
  const std::string error = ParseError(std::string("a: ") + GetParam() + "\n");
  EXPECT_TRUE(error.starts_with("f.yaml:1:4: tags such as '")) << error;
}

INSTANTIATE_TEST_SUITE_P(Tags,
                         YamlTagTest,
                         testing::Values("!!int 3", "!mine x", "!mine {b: 1}", "!!seq [1]"));

TEST(YamlDocumentTest, SecondDocumentIsAnError) {
  EXPECT_EQ(ParseError("a: 1\n---\na: 2\n"),
            "f.yaml:2:1: expected one YAML document, found more behind it");
}

// YAML::LoadAll never ends on these (yaml-cpp 0.7.0).
TEST(YamlDocumentTest, TextBehindTheDocumentIsAnError) {
  EXPECT_EQ(ParseError("{a: 1}}\n"), "f.yaml:1:7: not valid YAML: illegal flow end");
  EXPECT_EQ(ParseError("a,b\nc: 1\n"), "f.yaml:2:2: not valid YAML: illegal map value");
}

TEST(YamlDocumentTest, EscapesThatAreNoUtf8AreAnError) {
  EXPECT_EQ(ParseError("a: \"\\N\"\n"), "f.yaml:1:4: not UTF-8 once its escapes are read");
  EXPECT_EQ(ParseError("\"\\N\": 1\n"), "f.yaml:1:1: not UTF-8 once its escapes are read");
}

TEST(YamlDocumentTest, TextThatIsNoUtf8IsAnError) {
  EXPECT_EQ(ParseError("name: caf\xe9\n"), "f.yaml: not UTF-8 at byte 9");
}

TEST(YamlDocumentTest, AliasRepeatsItsAnchor) {
  EXPECT_EQ(JsonOf("a: &x {b: 1}\nc: *x\n"), Json::parse(R"({"a": {"b": 1}, "c": {"b": 1}})"));
}

// Nine levels of nine aliases: 9^9 fields in 300 bytes.
TEST(YamlDocumentTest, AliasesThatMultiplyAreStopped) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 9; ++level) {
    const std::string alias = "*a" + std::to_string(level - 1);
    text += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [" + alias;
    for (int i = 1; i < 9; ++i) {
      text += ", " + alias;
    }
    text += "]\n";
  }
  EXPECT_NE(ParseError(text).find("nests too deep or has too many fields"), std::string::npos);
}

// A key of 1 MB stands in the place of each of the 10,000 elements below it.
TEST(YamlDocumentTest, LongKeysThatMultiplyAreStopped) {
  std::string text = "? " + std::string(1 << 20, 'k') + "\n: [";
  for (int i = 0; i < 10'000; ++i) {
    text += "1, ";
  }
  EXPECT_NE(ParseError(text + "1]\n").find("nests too deep or has too many fields"),
            std::string::npos);
}

// Duplicate keys are looked for one by one, so their number is limited.
TEST(YamlDocumentTest, MapsWithMoreThan4096KeysAreStopped) {
  std::string text;
  for (int key = 0; key < 4097; ++key) {
    text += "k" + std::to_string(key) + ": 0\n";
  }
  EXPECT_EQ(ParseError(text), "f.yaml:4097:1: a map with more than 4096 keys");
}

std::string Nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(YamlDocumentTest, NestingIsLimited) {
  EXPECT_EQ(JsonOf(Nested(64)).dump(), Nested(64));
  EXPECT_EQ(ParseError(Nested(66)), "f.yaml:1:66: nests too deep or has too many fields");
}

TEST(YamlDocumentTest, DeepestNestingDoesNotOverflowTheStack) {
  EXPECT_FALSE(ParseError(Nested(1'000'000)).empty());
}

TEST(YamlDocumentTest, LargeTextIsAnError) {
  EXPECT_EQ(ParseError(std::string((2 << 20) + 1, '#')), "f.yaml: larger than 2.00 MiB");
}

// Overrides

TEST(YamlDocumentTest, SetReplacesAField) {
  YamlDocument document = YamlDocument::Parse("stage: 3\n", "f.yaml");
  document.Set("/stage", 2, "--set stage=2");
  EXPECT_EQ(document.json(), Json::parse(R"({"stage": 2})"));
  EXPECT_EQ(document.locator()("/stage"), "--set stage=2: stage");
}

TEST(YamlDocumentTest, SetAddsAField) {
  YamlDocument document = YamlDocument::Parse("stage: 3\n", "f.yaml");
  document.Set("/communicators", 2, "--set communicators=2");
  EXPECT_EQ(document.json(), Json::parse(R"({"stage": 3, "communicators": 2})"));
}

TEST(YamlDocumentTest, SetReachesIntoFields) {
  YamlDocument document = YamlDocument::Parse("a: {b: 1, c: 2}\n", "f.yaml");
  document.Set("/a/c", 3, "--set a.c=3");
  EXPECT_EQ(document.json(), Json::parse(R"({"a": {"b": 1, "c": 3}})"));
}

struct SetErrorCase {
  std::string pointer;
  std::string error;
};

class YamlSetErrorTest : public testing::TestWithParam<SetErrorCase> {};

TEST_P(YamlSetErrorTest, IsAnError) {
  YamlDocument document = YamlDocument::Parse("a: {b: 1}\nlist: [1, 2]\n", "f.yaml");
  EXPECT_EQ(ErrorText([&] { document.Set(GetParam().pointer, 3, "--set x"); }), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    Places,
    YamlSetErrorTest,
    testing::Values(SetErrorCase{"/missing/b", "--set x: there is no field missing"},
                    SetErrorCase{"/a/b/c", "--set x: expected a field that has fields, for a/b/c"},
                    SetErrorCase{"/a/c/d", "--set x: there is no field a/c"},
                    SetErrorCase{
                        "/list/4000000000",
                        "--set x: expected a field that has fields, for list/4000000000"}));

TEST(YamlDocumentTest, EmbeddedDocumentKeepsItsPlaces) {
  YamlDocument outer = YamlDocument::Parse("gpu: h200.yaml\n", "cluster.yaml");
  outer.Embed("/gpu", YamlDocument::Parse("name: H200\nmemory: 1 GiB\n", "h200.yaml"));
  EXPECT_EQ(outer.json(), Json::parse(R"({"gpu": {"name": "H200", "memory": "1 GiB"}})"));
  EXPECT_EQ(outer.locator()("/gpu/memory"), "h200.yaml:2:1: gpu/memory");
}

}  // namespace
}  // namespace dcsim
