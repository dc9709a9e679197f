#include "umbra/parameter.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "dmlc/parameter.h"
#include "tests/support/testing.h"
#include "umbra/compile.h"
#include "umbra/tshape.h"

namespace umbra {
namespace {

using Words = std::vector<std::pair<std::string, std::string>>;

enum class Mode { kFast, kExact };

struct Options : Parameter<Options> {
  float learning_rate;
  int num_hidden;
  std::string name;
  bool verbose;
  int act;
  Mode mode;
  optional<int> seed;
  optional<int> level;
  std::vector<int> kernel;
  std::int64_t big;
  double scale;
  UMBRA_DECLARE_PARAMETER(Options) {
    UMBRA_DECLARE_FIELD(num_hidden).set_range(0, 1000).describe("Units of the hidden layer.");
    UMBRA_DECLARE_FIELD(learning_rate).set_default(0.01f).set_lower_bound(0);
    UMBRA_DECLARE_FIELD(name).set_default("hello");
    UMBRA_DECLARE_FIELD(verbose).set_default(false);
    UMBRA_DECLARE_FIELD(act).add_enum("relu", 0).add_enum("tanh", 3).set_default(0);
    UMBRA_DECLARE_FIELD(mode).add_enum("fast", Mode::kFast).add_enum("exact", Mode::kExact).set_default(Mode::kExact);
    UMBRA_DECLARE_FIELD(seed).set_default(optional<int>());
    UMBRA_DECLARE_FIELD(level).add_enum("low", 1).add_enum("high", 2).set_default(optional<int>());
    UMBRA_DECLARE_FIELD(kernel).set_default({});
    UMBRA_DECLARE_FIELD(big).set_default(1).set_upper_bound(std::int64_t{1} << 40);
    UMBRA_DECLARE_FIELD(scale).set_default(1);
    UMBRA_DECLARE_ALIAS(num_hidden, nhidden);
  }
};
UMBRA_REGISTER_PARAMETER(Options);

struct Late : Parameter<Late> {
  int size;
  UMBRA_DECLARE_PARAMETER(Late) { UMBRA_DECLARE_FIELD(size).set_default(3); }
};
UMBRA_REGISTER_PARAMETER(Late);

TEST(ParameterDeathTest, AreReadUntilTheProgramEnds) {
  EXPECT_EXIT(
      {
        static const struct Last {
          ~Last() {
            Late late;
            late.Init(Words());
            std::fprintf(stderr, "size %d", late.size);
          }
        } last;
        Late().Init(Words());
        std::exit(0);
      },
      testing::ExitedWithCode(0), "size 3");
}

TEST(Parameter, InitAndDefaults) {
  Options o;
  o.Init(std::map<std::string, std::string>{{"num_hidden", "100"}, {"learning_rate", "0.1f"}, {"name", "MyNet"}});
  EXPECT_EQ(o.num_hidden, 100);
  EXPECT_EQ(o.learning_rate, 0.1f);
  EXPECT_EQ(o.name, "MyNet");
  EXPECT_EQ(o.act, 0);
  EXPECT_EQ(o.mode, Mode::kExact);
  EXPECT_FALSE(o.seed.has_value());
  o.Init(Words{{"nhidden", " 7 "},
               {"act", "tanh"},
               {"mode", "fast"},
               {"seed", "-3"},
               {"level", "high"},
               {"kernel", "(3, 5)"},
               {"verbose", "True"},
               {"big", "1099511627776"},
               {"scale", "1e-300"},
               {"__x__", "y"}});
  EXPECT_EQ(o.num_hidden, 7);
  EXPECT_EQ(o.act, 3);
  EXPECT_EQ(o.mode, Mode::kFast);
  EXPECT_EQ(o.seed, -3);
  EXPECT_EQ(o.level, 2);
  EXPECT_EQ(o.kernel, (std::vector<int>{3, 5}));
  EXPECT_TRUE(o.verbose);
  EXPECT_EQ(o.big, std::int64_t{1} << 40);
  EXPECT_EQ(o.scale, 1e-300);
  o.Init(Words{{"num_hidden", "1"}, {"seed", "None"}, {"level", "None"}});
  EXPECT_FALSE(o.seed.has_value());
}

TEST(Parameter, Errors) {
  Options o;
  const auto init = [&](Words words, parameter::ParamInitOption option = parameter::kAllowHidden) {
    return MessageOf([&] { o.Init(words, option); });
  };
  EXPECT_NE(init({}).find("required parameter 'num_hidden' of type int is not given"), std::string::npos);
  EXPECT_NE(init({{"num_hidden", "1001"}}).find("1001 is out of range: it must be at least 0 and at most 1000"),
            std::string::npos);
  EXPECT_EQ(init({{"num_hidden", "0"}}), "no error");
  EXPECT_EQ(init({{"num_hidden", "1000"}}), "no error");
  EXPECT_NE(init({{"num_hidden", "-1"}}).find("-1 is out of range"), std::string::npos);
  EXPECT_NE(init({{"num_hidden", "12x"}}).find("'12x' is no int"), std::string::npos);
  EXPECT_NE(init({{"num_hidden", "99999999999"}}).find("out of the range of int"), std::string::npos);
  EXPECT_NE(init({{"num_hidden", ""}}).find("no int"), std::string::npos);
  EXPECT_NE(init({{"num_hidden", "1"}, {"learning_rate", "-1"}}).find("at least 0"), std::string::npos);
  EXPECT_NE(init({{"num_hidden", "1"}, {"big", "1099511627777"}}).find("at most 1099511627776"), std::string::npos);
  EXPECT_NE(init({{"num_hidden", "1"}, {"act", "gelu"}}).find("'gelu' is none of {'relu', 'tanh'}"), std::string::npos);
  EXPECT_NE(init({{"num_hidden", "1"}, {"verbose", "yes"}}).find("no boolean"), std::string::npos);
  EXPECT_NE(init({{"num_hidden", "1"}, {"seed", "x"}}).find("not None"), std::string::npos);
  EXPECT_NE(init({{"num_hidden", "1"}, {"kernel", "(1, 2"}}).find("tuple of int"), std::string::npos);
  const std::string unknown = init({{"num_hidden", "1"}, {"hidden", "1"}});
  EXPECT_NE(unknown.find("Cannot find argument 'hidden'"), std::string::npos);
  EXPECT_NE(unknown.find("num_hidden : int, required"), std::string::npos);
  EXPECT_EQ(init({{"num_hidden", "1"}, {"__a__", "1"}}), "no error");
  EXPECT_NE(init({{"num_hidden", "1"}, {"__a__", "1"}}, parameter::kAllMatch), "no error");
  EXPECT_EQ(init({{"num_hidden", "1"}, {"a", "1"}}, parameter::kAllowUnknown), "no error");
  const Words rest = o.InitAllowUnknown(Words{{"num_hidden", "5"}, {"b", "2"}});
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].second, "2");
}

TEST(Parameter, DictRoundTrips) {
  Options a, b;
  a.Init(Words{{"num_hidden", "3"},
               {"learning_rate", "0.1"},
               {"scale", "0.1"},
               {"kernel", "[4]"},
               {"act", "tanh"},
               {"level", "low"}});
  const auto dict = a.__DICT__();
  EXPECT_EQ(dict.at("learning_rate"), "0.1");
  EXPECT_EQ(dict.at("kernel"), "(4,)");
  EXPECT_EQ(dict.at("act"), "tanh");
  EXPECT_EQ(dict.at("seed"), "None");
  EXPECT_EQ(dict.at("num_hidden"), "3");
  EXPECT_EQ(dict.at("nhidden"), "3");
  b.Init(dict);
  EXPECT_EQ(b.__DICT__(), dict);
  EXPECT_EQ(b.scale, 0.1);
  nlohmann::json json;
  a.Save(&json);
  Options c;
  c.Load(nlohmann::json::parse(json.dump()));
  EXPECT_EQ(c.__DICT__(), dict);
}

TEST(Parameter, Documentation) {
  const std::string doc = Options::__DOC__();
  EXPECT_NE(doc.find("num_hidden : int, required\n    Units of the hidden layer.\n"), std::string::npos);
  EXPECT_NE(doc.find("name : string, optional, default='hello'"), std::string::npos);
  EXPECT_NE(doc.find("mode : {'fast', 'exact'}, optional, default='exact'"), std::string::npos);
  EXPECT_NE(doc.find("level : {None, 'low', 'high'}, optional, default='None'"), std::string::npos);
  const auto fields = Options::__FIELDS__();
  ASSERT_EQ(fields.size(), 11u);
  EXPECT_EQ(fields[0].name, "num_hidden");
  EXPECT_EQ(fields[0].aliases, (std::vector<std::string>{"nhidden"}));
  EXPECT_EQ(fields[4].type, "int");
  EXPECT_EQ(fields[4].type_info_str, "{'relu', 'tanh'}, optional, default='relu'");
  EXPECT_EQ(fields[7].type, "int or None");
  EXPECT_EQ(fields[8].type, "tuple of int");
  EXPECT_STREQ(type_name<float>(), "float");
  EXPECT_STREQ(type_name<double>(), "double");
  EXPECT_STREQ(type_name<int>(), "int");
  EXPECT_STREQ(type_name<std::uint32_t>(), "int (non-negative)");
  EXPECT_STREQ(type_name<std::uint64_t>(), "long (non-negative)");
  EXPECT_STREQ(type_name<std::string>(), "string");
  EXPECT_STREQ(type_name<bool>(), "boolean");
  EXPECT_STREQ(type_name<TShape>(), "umbra::TShape");
}

TEST(Parameter, AnyLocaleAndThread) {
  const char* german = std::setlocale(LC_ALL, "de_DE.UTF-8");
  Options o;
  o.Init(Words{{"num_hidden", "3"}, {"learning_rate", "0.25"}});
  EXPECT_EQ(o.learning_rate, 0.25f);
  EXPECT_EQ(o.__DICT__().at("learning_rate"), "0.25");
  if (german != nullptr) std::setlocale(LC_ALL, "C");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      Options mine;
      mine.Init(Words{{"num_hidden", "3"}});
      EXPECT_EQ(mine.num_hidden, 3);
    });
  for (auto& thread : threads) thread.join();
}

TEST(Parameter, Environment) {
  SetEnv("UMBRA_TEST_PARAMETER", 42);
  EXPECT_EQ(GetEnv("UMBRA_TEST_PARAMETER", 7), 42);
  EXPECT_EQ(GetEnv("UMBRA_TEST_PARAMETER_NONE", 7.5), 7.5);
  SetEnv("UMBRA_TEST_PARAMETER", std::string("x"));
  EXPECT_NE(MessageOf([] { GetEnv("UMBRA_TEST_PARAMETER", 7); }).find("'x' is no int"), std::string::npos);
}

TEST(Parameter, EnvironmentOfBooleansAndEmpty) {
  SetEnv("UMBRA_TEST_PARAMETER", std::string());
  EXPECT_EQ(GetEnv("UMBRA_TEST_PARAMETER", 7), 7);
  EXPECT_TRUE(GetEnv("UMBRA_TEST_PARAMETER", true));
  for (const char* text : {"TRUE", "true", " True\n", "1"}) {
    SetEnv("UMBRA_TEST_PARAMETER", std::string(text));
    EXPECT_TRUE(GetEnv("UMBRA_TEST_PARAMETER", false)) << text;
  }
  SetEnv("UMBRA_TEST_PARAMETER", false);
  EXPECT_FALSE(GetEnv("UMBRA_TEST_PARAMETER", true));
  SetEnv("UMBRA_TEST_PARAMETER", std::string("on"));
  EXPECT_SAYS("UMBRA_TEST_PARAMETER: 'on' is no boolean: expected True, 1, False or 0",
              GetEnv("UMBRA_TEST_PARAMETER", true));
}

// A class that is a parameter by its `>>` and `<<`.
struct Ratio {
  int above = 0, below = 1;
  friend bool operator==(const Ratio& a, const Ratio& b) { return a.above == b.above && a.below == b.below; }
  friend std::ostream& operator<<(std::ostream& out, const Ratio& r) { return out << r.above << ", " << r.below; }
  friend std::istream& operator>>(std::istream& in, Ratio& r) {
    char comma = 0;
    if (in >> r.above >> comma >> r.below && comma != ',') in.setstate(std::ios::failbit);
    return in;
  }
};

struct Rich : Parameter<Rich> {
  TShape shape;
  std::vector<TShape> shapes;
  Ratio ratio;
  std::vector<Ratio> ratios;
  std::vector<std::string> names;
  std::vector<std::vector<int>> table;
  optional<std::string> title;
  std::vector<optional<std::string>> titles;
  std::optional<double> limit;
  std::uint8_t byte;
  std::uint64_t word;
  float real;
  double wide;
  UMBRA_DECLARE_PARAMETER(Rich) {
    UMBRA_DECLARE_FIELD(shape).set_default(Shape2(3, 4)).describe("Extents.");
    UMBRA_DECLARE_FIELD(shapes).set_default({});
    UMBRA_DECLARE_FIELD(ratio).set_default({});
    UMBRA_DECLARE_FIELD(ratios).set_default({});
    UMBRA_DECLARE_FIELD(names).set_default({});
    UMBRA_DECLARE_FIELD(table).set_default({});
    UMBRA_DECLARE_FIELD(title).set_default(nullopt);
    UMBRA_DECLARE_FIELD(titles).set_default({});
    UMBRA_DECLARE_FIELD(limit).set_default(std::nullopt).set_upper_bound(1);
    UMBRA_DECLARE_FIELD(byte).set_default(0);
    UMBRA_DECLARE_FIELD(word).set_default(0);
    UMBRA_DECLARE_FIELD(real).set_default(0);
    UMBRA_DECLARE_FIELD(wide).set_default(0).set_upper_bound(1e300);
  }
};
UMBRA_REGISTER_PARAMETER(Rich);

Rich RichOf(const Words& words) {
  Rich rich;
  rich.Init(words);
  return rich;
}

TEST(Parameter, ClassesWithStreams) {
  EXPECT_EQ(RichOf({}).shape, Shape2(3, 4));
  EXPECT_EQ(RichOf({{"shape", " (2, 3,5)\n"}}).shape, Shape3(2, 3, 5));
  EXPECT_EQ(RichOf({{"ratio", "1,2"}}).ratio, (Ratio{1, 2}));
  for (const char* text : {"(2,", "(2,3) x", "x", ""})
    EXPECT_SAYS("parameter 'shape': '" + std::string(text) + "' is no umbra::TShape", RichOf({{"shape", text}}));
  Rich kept = RichOf({{"ratio", "1,2"}});
  EXPECT_THROW(kept.Init(Words{{"ratio", "7,x"}}), ParamError);
  EXPECT_EQ(kept.ratio, (Ratio{1, 2}));
  EXPECT_EQ(Rich::__FIELDS__()[0].type_info_str, "umbra::TShape, optional, default=(3,4)");
}

TEST(Parameter, TextsAreUnambiguous) {
  Rich a = RichOf({});
  const auto text_after = [&](const char* field) {
    const auto dict = a.__DICT__();
    const Rich b = RichOf(Words(dict.begin(), dict.end()));
    EXPECT_EQ(a.shapes, b.shapes);
    EXPECT_EQ(a.ratio, b.ratio);
    EXPECT_EQ(a.ratios, b.ratios);
    EXPECT_EQ(a.names, b.names);
    EXPECT_EQ(a.table, b.table);
    EXPECT_EQ(a.title, b.title);
    EXPECT_EQ(a.titles, b.titles);
    EXPECT_EQ(a.limit, b.limit);
    return dict.at(field);
  };
  using Names = std::vector<std::string>;
  for (const auto& [names, text] :
       std::vector<std::pair<Names, std::string>>{{{}, "()"},
                                                  {{""}, "('',)"},
                                                  {{"a,b"}, "('a,b',)"},
                                                  {{"a", "b c"}, "(a, b c)"},
                                                  {{" a", "b\t"}, "(' a', 'b\t')"},
                                                  {{"it's", "'s"}, "(it's, '\\'s')"},
                                                  {{"(", ")]", "(a,b)"}, "('(', ')]', (a,b))"},
                                                  {{"\\", "\"\\"}, "(\\, '\"\\\\')"},
                                                  {{"None", "('"}, "(None, '(\\'')"}}) {
    a.names = names;
    EXPECT_EQ(text_after("names"), text);
  }
  EXPECT_EQ(RichOf({{"names", "[\"a,b\", 'c', d e]"}}).names, (Names{"a,b", "c", "d e"}));
  EXPECT_EQ(RichOf({{"names", "a, (b,c)"}}).names, (Names{"a", "(b,c)"}));
  EXPECT_SAYS("a bracket or a quote is not closed", RichOf({{"names", "('a)"}}));
  EXPECT_SAYS("must end with the quote", RichOf({{"names", "('a'b)"}}));
  for (const auto& [table, text] : std::vector<std::pair<std::vector<std::vector<int>>, std::string>>{
           {{{}}, "((),)"}, {{{1, 2}}, "((1, 2),)"}, {{{1}, {}, {2, 3}}, "((1,), (), (2, 3))"}}) {
    a.table = table;
    EXPECT_EQ(text_after("table"), text);
  }
  EXPECT_EQ(RichOf({{"table", "(1, 2), (3,)"}}).table, (std::vector<std::vector<int>>{{1, 2}, {3}}));
  EXPECT_SAYS("is no tuple of tuple of int: '(3, x)' in it is no tuple of int: 'x' in it is no int",
              RichOf({{"table", "((1, 2), (3, x))"}}));
  for (const auto& [title, text] : std::vector<std::pair<optional<std::string>, std::string>>{
           {nullopt, "None"}, {"None", "'None'"}, {"", ""}, {"a,b", "a,b"}, {"'x'", "'\\'x\\''"}, {" x", "' x'"}}) {
    a.title = title;
    EXPECT_EQ(text_after("title"), text);
  }
  a.titles = {nullopt, "None", "", "a,b", "c"};
  EXPECT_EQ(text_after("titles"), "(None, '\\'None\\'', '', 'a,b', c)");
  a.shapes = {Shape2(2, 3), Shape1(4), TShape()};
  EXPECT_EQ(text_after("shapes"), "((2,3), (4,), ())");
  a.ratios = {{1, 2}, {3, 4}};
  EXPECT_EQ(text_after("ratios"), "('1, 2', '3, 4')");
  a.limit = -0.5;
  EXPECT_EQ(text_after("limit"), "-0.5");
  EXPECT_SAYS("at most 1", RichOf({{"limit", "2"}}));
}

TEST(Parameter, LimitsOfNumbers) {
  const auto round = [](const char* field, const std::string& text) {
    return RichOf(Words{{field, text}}).__DICT__().at(field);
  };
  EXPECT_EQ(round("byte", "255\n"), "255");
  EXPECT_SAYS("out of the range of unsigned 8-bit int", round("byte", "256"));
  EXPECT_SAYS("no unsigned 8-bit int", round("byte", "-1"));
  EXPECT_EQ(round("word", "\t+18446744073709551615 \r\n"), "18446744073709551615");
  EXPECT_SAYS("out of the range of long (non-negative)", round("word", "18446744073709551616"));
  EXPECT_SAYS("no long (non-negative)", round("word", "-1"));
  EXPECT_SAYS("no long (non-negative)", round("word", "+-1"));
  for (const char* text : {"nan", "inf", "-inf", "1e-45", "3.4028235e+38", "1.1754944e-38", "-0"})
    EXPECT_EQ(round("real", text), text);
  for (const char* text : {"-inf", "5e-324", "2.225073858507201e-308", "-1.7976931348623157e+308"})
    EXPECT_EQ(round("wide", text), text);
  EXPECT_SAYS("nan is out of range: it must be at most 1e+300", round("wide", "nan"));
  EXPECT_SAYS("inf is out of range", round("wide", "inf"));
  EXPECT_SAYS("out of the range of double", round("wide", "1e400"));
  EXPECT_SAYS("out of the range of float", round("real", "1e39"));
  EXPECT_SAYS("no float", round("real", "f"));
}

TEST(Parameter, TheLastOfSeveralHolds) {
  Options o;
  o.Init(Words{{"num_hidden", "1"}, {"nhidden", "2"}});
  EXPECT_EQ(o.num_hidden, 2);
  o.Init(Words{{"nhidden", "2"}, {"num_hidden", "1"}, {"num_hidden", "3"}});
  EXPECT_EQ(o.num_hidden, 3);
}

TEST(Parameter, InitAfterAFailedOne) {
  Options o;
  EXPECT_THROW(o.Init(Words{{"num_hidden", "5"}, {"seed", "4"}, {"verbose", "1"}, {"scale", "x"}}), ParamError);
  o.Init(Words{{"num_hidden", "1"}});
  EXPECT_EQ(o.num_hidden, 1);
  EXPECT_FALSE(o.seed.has_value());
  EXPECT_FALSE(o.verbose);
  EXPECT_EQ(o.scale, 1);
}

TEST(Parameter, JsonOfTheWrongKind) {
  const auto load = [](const char* text) {
    Options o;
    o.Load(nlohmann::json::parse(text));
  };
  EXPECT_SAYS("parameter 'num_hidden': expected its text as a string, but the JSON is: number; write it in quotes",
              load(R"({"num_hidden": 3})"));
  EXPECT_SAYS("but the JSON is: array", load(R"({"num_hidden": ["3"]})"));
  for (const char* text : {"[1, 2]", "null", "3", "\"num_hidden\"", "true"})
    EXPECT_SAYS("Load: expected an object of strings, as Save writes, but the JSON is: ", load(text));
  EXPECT_SAYS("Cannot find argument 'hidden'", load(R"({"num_hidden": "1", "hidden": "1"})"));
  EXPECT_SAYS("required parameter 'num_hidden'", load("{}"));
}

TEST(Parameter, ValueOfNoWord) {
  Options o;
  o.Init(Words{{"num_hidden", "1"}});
  o.act = 1;
  EXPECT_SAYS("parameter 'act': 1 is the value of none of {'relu', 'tanh'}", o.__DICT__());
}

// Fields that are declared wrongly: twice, or with a word twice.
template <int kind>
struct Wrong : Parameter<Wrong<kind>> {
  int a, b;
  static parameter::ParamManager* __MANAGER__() {
    static parameter::ParamManagerSingleton<Wrong> singleton("Wrong");
    return &singleton.manager;
  }
  void __DECLARE__(parameter::ParamManagerSingleton<Wrong>* manager) {
    UMBRA_DECLARE_FIELD(a);
    if (kind == 0) UMBRA_DECLARE_FIELD(b).add_enum("x", 1).add_enum("x", 2);
    if (kind == 1) UMBRA_DECLARE_FIELD(b).add_enum("x", 1).add_enum("y", 1);
    if (kind == 2) UMBRA_DECLARE_FIELD(a);
    UMBRA_DECLARE_ALIAS(a, c);
    if (kind == 3) UMBRA_DECLARE_ALIAS(a, c);
    if (kind == 4) this->DECLARE(manager, "c", b);
    if (kind == 5) UMBRA_DECLARE_ALIAS(b, d);
  }
};
TEST(Parameter, WrongDeclarations) {
  EXPECT_SAYS("'x' of parameter 'b' or its value exists already", Wrong<0>().Init(Words{}));
  EXPECT_SAYS("'y' of parameter 'b' or its value exists already as 'x'", Wrong<1>().Init(Words{}));
  EXPECT_SAYS("the name 'a' is declared twice in Wrong", Wrong<2>().Init(Words{}));
  EXPECT_SAYS("the name 'c' is declared twice in Wrong", Wrong<3>().Init(Words{}));
  EXPECT_SAYS("the name 'c' is declared twice in Wrong", Wrong<4>().Init(Words{}));
  EXPECT_SAYS("alias 'd' of 'b', which is no field of Wrong", Wrong<5>().Init(Words{}));
}

TEST(Parameter, CompileOptions) {
  CompileOptions o;
  const auto initial = o.__DICT__();
  EXPECT_EQ(initial.at("target"), "best");
  EXPECT_EQ(initial.at("engine"), "jit");
  EXPECT_EQ(initial.at("use_disk_cache"), "True");
  o.target = "avx2";
  o.engine = Engine::kInterpreter;
  o.use_disk_cache = false;
  CompileOptions same;
  same.Init(o.__DICT__());
  EXPECT_EQ(same.target, "avx2");
  EXPECT_EQ(same.engine, Engine::kInterpreter);
  EXPECT_FALSE(same.use_disk_cache);
  o.Init(Words{{"target", "best"}, {"engine", "system"}});
  EXPECT_EQ(o.target, "");
  EXPECT_EQ(o.engine, Engine::kSystem);
  o.Init(Words{});
  EXPECT_EQ(o.__DICT__(), initial);
  EXPECT_SAYS("'riscv' is none of {'best', 'plain', 'sse2', 'avx2', 'avx512', 'cuda'}",
              o.Init(Words{{"target", "riscv"}}));
  for (const ParamFieldInfo& field : CompileOptions::__FIELDS__()) EXPECT_NE(field.description, "") << field.name;
}

}  // namespace
}  // namespace umbra

struct DmlcParam : public dmlc::Parameter<DmlcParam> {
  float learning_rate;
  int num_hidden;
  DMLC_DECLARE_PARAMETER(DmlcParam) {
    DMLC_DECLARE_FIELD(num_hidden).set_range(0, 1000);
    DMLC_DECLARE_FIELD(learning_rate).set_default(0.01f);
    DMLC_DECLARE_ALIAS(num_hidden, nh);
  }
};
DMLC_REGISTER_PARAMETER(DmlcParam);
TEST(Dmlc, ForwardsToUmbra) {
  DmlcParam p;
  p.Init(std::map<std::string, std::string>{{"nh", "3"}}, dmlc::parameter::kAllMatch);
  EXPECT_EQ(p.num_hidden, 3);
  EXPECT_THROW(p.Init(std::map<std::string, std::string>{{"nh", "-3"}}), dmlc::ParamError);
}

// Names and texts that programs for dmlc-core rely on.
struct Kelvin {
  double degrees = 0;
  friend std::ostream& operator<<(std::ostream& out, Kelvin k) { return out << k.degrees; }
  friend std::istream& operator>>(std::istream& in, Kelvin& k) { return in >> k.degrees; }
};
namespace dmlc {
DMLC_DECLARE_TYPE_NAME(Kelvin, "temperature")
namespace parameter {
template <>
class FieldEntry<Kelvin> : public FieldEntryBase<FieldEntry<Kelvin>, Kelvin> {
 public:
  void Set(void* head, const std::string& value) const override {
    if (value.empty() || value.back() != 'K') throw dmlc::ParamError("parameter '" + key_ + "': expected " + type_);
    FieldEntryBase::Set(head, value.substr(0, value.size() - 1));
  }

 protected:
  void PrintValue(std::ostream& out, Kelvin value) const override { out << value << 'K'; }
};
}  // namespace parameter
}  // namespace dmlc
struct KelvinParam : public dmlc::Parameter<KelvinParam> {
  Kelvin heat;
  DMLC_DECLARE_PARAMETER(KelvinParam) { DMLC_DECLARE_FIELD(heat).set_default({300}); }
};
DMLC_REGISTER_PARAMETER(KelvinParam);
TEST(Dmlc, FieldEntryOfOnesOwn) {
  KelvinParam p;
  p.Init(std::map<std::string, std::string>{{"heat", "77K"}});
  EXPECT_EQ(p.__DICT__().at("heat"), "77K");
  EXPECT_EQ(p.__DOC__(), "heat : temperature, optional, default=300K\n");
  EXPECT_THROW(p.Init(std::map<std::string, std::string>{{"heat", "77"}}), dmlc::Error);
  using IntEntry = dmlc::parameter::FieldEntry<int>;
  static_assert(std::is_base_of_v<dmlc::parameter::FieldEntryNumeric<IntEntry, int>, IntEntry>);
  using BoolEntry = dmlc::parameter::FieldEntry<bool>;
  static_assert(std::is_base_of_v<dmlc::parameter::FieldEntryBase<BoolEntry, bool>, BoolEntry>);
}
TEST(Dmlc, Optional) {
  dmlc::optional<int> a = 3, b;
  EXPECT_TRUE(a && !b);
  EXPECT_EQ(a, 3);
  EXPECT_NE(a, b);
  EXPECT_EQ(b, dmlc::nullopt);
  EXPECT_THROW(b.value(), dmlc::Error);
  EXPECT_EQ(b.value_or(7), 7);
  std::ostringstream out;
  out << a << ' ' << b << ' ' << dmlc::optional<std::string>("x");
  EXPECT_EQ(out.str(), "3 None x");
  std::istringstream in(" None 12 x");
  in >> a >> b;
  EXPECT_FALSE(a.has_value());
  EXPECT_EQ(b.value(), 12);
  EXPECT_FALSE(in >> b);
  EXPECT_EQ(*b, 12);
  b = dmlc::nullopt;
  a.swap(b);
  EXPECT_EQ(a, b);
  EXPECT_STREQ(dmlc::type_name<dmlc::optional<int>>(), "int or None");
}
