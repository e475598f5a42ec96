#include "model/ir/document.h"

#include <gtest/gtest.h>

#include "tests/support/error_text.h"

namespace dcsim {
namespace {

std::string ParseError(const std::string& text) {
  return ErrorText([&] { ParseJson(text, "a.json"); });
}

TEST(ParseJsonTest, SyntaxErrorNamesLineAndColumn) {
  // The second line's sixth character is the first that cannot follow.
  const std::string message = ParseError("{\n \"a\" 1}\n");
  EXPECT_EQ(message.substr(0, message.find(": not")), "a.json:2:6");
}

TEST(ParseJsonTest, SyntaxErrorOnTheFirstLineCountsFromOne) {
  const std::string message = ParseError("x");
  EXPECT_EQ(message.substr(0, message.find(": not")), "a.json:1:1");
}

TEST(ParseJsonTest, TextThatEndsTooEarlyIsMarkedBehindItsEnd) {
  const std::string message = ParseError("[1,\n2");
  EXPECT_EQ(message.substr(0, message.find(": not")), "a.json:2:2");
}

TEST(ParseJsonTest, TextAfterTheDocumentIsRejected) {
  const std::string message = ParseError("{} {}");
  EXPECT_EQ(message.substr(0, message.find(": not")), "a.json:1:4");
}

TEST(ParseJsonTest, KeyThatStandsTwiceIsRejected) {
  EXPECT_EQ(ParseError(R"({"a": 1, "b": 2, "a": 3})"),
            "a.json: key 'a' stands twice in one object");
}

TEST(ParseJsonTest, KeyMayStandInTwoObjects) {
  EXPECT_EQ(ParseJson(R"([{"a": 1}, {"a": {"a": 2}}])", "a.json")[1]["a"]["a"], 2);
}

TEST(ParseJsonTest, NestsSixtyFourLevels) {
  const std::string text = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(ParseJson(text, "a.json").is_array());
}

TEST(ParseJsonTest, DoesNotNestSixtyFiveLevels) {
  const std::string text = std::string(65, '[') + std::string(65, ']');
  EXPECT_EQ(ParseError(text), "a.json: nests deeper than 64 levels");
}

TEST(ParseJsonTest, ObjectsCountAsLevels) {
  std::string text;
  for (int level = 0; level < 65; ++level) {
    text += "{\"a\":";
  }
  EXPECT_EQ(ParseError(text), "a.json: nests deeper than 64 levels");
}

// Duplicate keys are looked for one by one, so their number is limited.
TEST(ParseJsonTest, ObjectsWithMoreThan4096KeysAreRejected) {
  std::string text = "{";
  for (int key = 0; key < 4097; ++key) {
    text += (key == 0 ? "\"" : ",\"") + std::to_string(key) + "\":0";
  }
  EXPECT_EQ(ParseError(text + "}"), "a.json: an object has more than 4096 keys");
}

// Hours, when every object is paid for with a walk along the whole list.
TEST(ParseJsonTest, TimeGrowsWithTheLengthOfAListAndNotItsSquare) {
  constexpr int kObjects = 1'000'000;
  std::string text = "[";
  for (int i = 0; i < kObjects; ++i) {
    text += "{},";
  }
  EXPECT_EQ(ParseJson(text + "0]", "a.json").size(), kObjects + 1U);
}

TEST(ParseJsonTest, TextsWithMoreThanTenMillionValuesAreRejected) {
  std::string text = "[";
  for (int i = 0; i < 10'000'000; ++i) {
    text += "0,";
  }
  EXPECT_EQ(ParseError(text + "0]"), "a.json: holds more than 10000000 values");
}

TEST(ParseJsonTest, NumbersThatAreTooLargeAreLocated) {
  EXPECT_EQ(ParseError("[1,\n1e999]"),
            "a.json:2:5: not valid JSON: number overflow parsing '1e999'");
}

TEST(PathTest, PointerNamesKeysAndIndices) {
  const Path root;
  const Path graphs(root, "graphs");
  const Path first(graphs, std::size_t{0});
  EXPECT_EQ(root.Pointer(), "");
  EXPECT_EQ(Path(first, "ops").Pointer(), "/graphs/0/ops");
}

TEST(PointerLocatorTest, RootIsTheFileAlone) {
  const Locator locate = PointerLocator("a.json");
  EXPECT_EQ(locate(""), "a.json");
  EXPECT_EQ(locate("/a/0"), "a.json: /a/0");
}

TEST(FaultsTest, NoneThrowsNothing) {
  const Faults faults(PointerLocator("a.json"));
  EXPECT_TRUE(faults.empty());
  EXPECT_NO_THROW(faults.ThrowIfAny());
}

TEST(FaultsTest, AllAreReportedOnePerLine) {
  Faults faults(PointerLocator("a.json"));
  faults.Add("/a", "one");
  faults.Add("/b", "two");
  EXPECT_EQ(ErrorText([&] { faults.ThrowIfAny(); }), "a.json: /a: one\na.json: /b: two");
}

TEST(FaultsTest, BeyondTwentyOnlyTheirNumberIsReported) {
  Faults faults(PointerLocator("a.json"));
  std::string expected;
  for (int i = 0; i < 23; ++i) {
    faults.Add("/a", std::to_string(i));
    expected += i < 20 ? "a.json: /a: " + std::to_string(i) + "\n" : "";
  }
  EXPECT_EQ(ErrorText([&] { faults.ThrowIfAny(); }), expected + "and 3 more");
}

/// The fault that reading one field of the root object gives, or "" after a success.
template <typename Reader>
std::string FieldFault(const char* json, Reader read) {
  const Json value = Json::parse(json);
  Faults faults(PointerLocator("a.json"));
  const Path root;
  const bool success = read(value, Path(root, "key"), faults).has_value();
  EXPECT_EQ(success, faults.empty());
  return success ? "" : ErrorText([&] { faults.ThrowIfAny(); });
}

TEST(ReadFieldTest, BoolTakesNoNumber) {
  EXPECT_EQ(FieldFault("true", ReadBool), "");
  EXPECT_EQ(FieldFault("1", ReadBool), "a.json: /key: expected true or false, found 1");
}

TEST(ReadFieldTest, StringTakesNoNull) {
  EXPECT_EQ(FieldFault("\"a\"", ReadString), "");
  EXPECT_EQ(FieldFault("null", ReadString), "a.json: /key: expected a text, found null");
}

TEST(ReadFieldTest, NumberTakesIntegersAndFloats) {
  EXPECT_EQ(FieldFault("1", ReadNumber), "");
  EXPECT_EQ(FieldFault("1.5", ReadNumber), "");
  EXPECT_EQ(FieldFault("\"1\"", ReadNumber), "a.json: /key: expected a number, found \"1\"");
}

TEST(ReadFieldTest, IntegerTakesNoFloat) {
  EXPECT_EQ(FieldFault("-3", ReadInteger), "");
  EXPECT_EQ(FieldFault("3.0", ReadInteger), "a.json: /key: expected a whole number, found 3.0");
}

// 2^63 - 1 is the largest; JSON's unsigned 2^63 would turn negative.
TEST(ReadFieldTest, IntegerTakesNothingBeyond63Bits) {
  EXPECT_EQ(FieldFault("9223372036854775807", ReadInteger), "");
  EXPECT_EQ(FieldFault("9223372036854775808", ReadInteger),
            "a.json: /key: expected a whole number, found 9223372036854775808");
}

TEST(ReadFieldTest, QuantitiesNeedTheirUnit) {
  EXPECT_EQ(FieldFault("\"80 GiB\"", ReadBytes), "");
  EXPECT_EQ(FieldFault("80", ReadBytes),
            "a.json: /key: expected bytes with a unit such as \"80 GiB\", found 80");
  EXPECT_EQ(FieldFault("\"5 m\"", ReadDuration),
            "a.json: /key: expected a time with a unit such as \"4.9 us\", found \"5 m\"");
  EXPECT_EQ(FieldFault("\"5 GB\"", ReadBytesPerSecond),
            "a.json: /key: expected a rate with a unit such as \"450 GB/s\", found \"5 GB\"");
  EXPECT_EQ(FieldFault("500e6", ReadElements),
            "a.json: /key: expected a count with its unit such as \"500e6 elements\", found "
            "500000000.0");
  EXPECT_EQ(FieldFault("\"1 FLOP/s\"", ReadFlopsPerSecond),
            "a.json: /key: expected a rate with a unit such as \"989 TFLOP/s\", found \"1 "
            "FLOP/s\"");
}

TEST(ReadFieldTest, ObjectsAndListsAreNotQuoted) {
  EXPECT_EQ(FieldFault("{\"a\": 1}", ReadBool),
            "a.json: /key: expected true or false, found an object");
  EXPECT_EQ(FieldFault("[1]", ReadBool), "a.json: /key: expected true or false, found a list");
}

// Sixty characters of the quotation, its opening quote among them, are shown.
TEST(ReadFieldTest, LongTextsAreCutInTheMessage) {
  const std::string json = "\"" + std::string(100, 'x') + "\"";
  EXPECT_EQ(FieldFault(json.c_str(), ReadBool),
            "a.json: /key: expected true or false, found \"" + std::string(59, 'x') + "…");
}

std::string ChoiceFault(const char* json) {
  return FieldFault(json, [](const Json& value, const Path& path, Faults& faults) {
    const std::vector<std::string_view> names = {"fused", "foreach"};
    return ReadChoice(value, names, path, faults);
  });
}

TEST(ReadChoiceTest, UnknownNameGetsTheNearestOne) {
  EXPECT_EQ(ChoiceFault("\"foreach\""), "");
  EXPECT_EQ(ChoiceFault("\"fuse\""),
            "a.json: /key: expected fused or foreach, found 'fuse', did you mean 'fused'?");
}

TEST(ReadChoiceTest, OtherTypesAreRejected) {
  EXPECT_EQ(ChoiceFault("1"), "a.json: /key: expected fused or foreach, found 1");
}

/// Reads an object with a required "a" and an optional "b", both whole numbers.
struct Pair {
  std::int64_t a = -1;
  std::int64_t b = -1;
  std::string faults;
};

Pair ReadPair(const char* json) {
  const Json value = Json::parse(json);
  Faults faults(PointerLocator("a.json"));
  const Path root;
  ObjectReader object(value, root, faults);
  Pair pair;
  object.Required("a", ReadInteger, pair.a);
  object.Optional("b", ReadInteger, pair.b);
  object.RejectUnknown();
  pair.faults = faults.empty() ? "" : ErrorText([&] { faults.ThrowIfAny(); });
  return pair;
}

TEST(ObjectReaderTest, MissingOptionalFieldLeavesTheTarget) {
  const Pair pair = ReadPair("{\"a\": 1}");
  EXPECT_EQ(pair.faults, "");
  EXPECT_EQ(pair.a, 1);
  EXPECT_EQ(pair.b, -1);
}

TEST(ObjectReaderTest, MissingRequiredFieldIsAFaultOfTheObject) {
  EXPECT_EQ(ReadPair("{\"b\": 1}").faults, "a.json: key 'a' is missing");
}

TEST(ObjectReaderTest, UnknownKeyGetsTheNearestKnownOne) {
  const std::vector<std::string_view> known = {"stage"};
  const Json value = Json::parse("{\"stag\": 1}");
  Faults faults(PointerLocator("a.json"));
  const Path root;
  ObjectReader object(value, root, faults);
  object.Find("stage");
  object.RejectUnknown();
  EXPECT_EQ(ErrorText([&] { faults.ThrowIfAny(); }),
            "a.json: /stag: unknown key 'stag', did you mean 'stage'?");
}

TEST(ObjectReaderTest, FaultsOfAllFieldsAreCollected) {
  EXPECT_EQ(ReadPair("{\"b\": true, \"c\": 1}").faults,
            "a.json: key 'a' is missing\n"
            "a.json: /b: expected a whole number, found true\n"
            "a.json: /c: unknown key 'c'");
}

TEST(ObjectReaderTest, ValueThatIsNoObjectIsOneFault) {
  EXPECT_EQ(ReadPair("[1, 2]").faults, "a.json: expected an object with keys, found a list");
}

std::string FormatError(const char* json) {
  return ErrorText(
      [&] { RequireFormat(Json::parse(json), "dc-graph/1", PointerLocator("a.json")); });
}

TEST(RequireFormatTest, OtherFormatsAreNamed) {
  EXPECT_EQ(FormatError("{\"format\": \"dc-graph/2\"}"),
            "a.json: /format: expected a document with \"format\": \"dc-graph/1\", found "
            "\"dc-graph/2\"");
}

TEST(RequireFormatTest, DocumentsWithoutFormatAreRejected) {
  EXPECT_EQ(FormatError("{}"),
            "a.json: expected a document with \"format\": \"dc-graph/1\", found none");
  EXPECT_EQ(FormatError("[]"),
            "a.json: expected a document with \"format\": \"dc-graph/1\", found a list");
}

}  // namespace
}  // namespace dcsim
