#include "umbra/parameter.h"

#include <gtest/gtest.h>

#include <clocale>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/testing.h"
#include "dmlc/parameter.h"

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

TEST(Parameter, InitAndDefaults) {
  Options o;
  o.Init(std::map<std::string, std::string>{{"num_hidden", "100"}, {"learning_rate", "0.1f"}, {"name", "MyNet"}});
  EXPECT_EQ(o.num_hidden, 100);
  EXPECT_EQ(o.learning_rate, 0.1f);
  EXPECT_EQ(o.name, "MyNet");
  EXPECT_EQ(o.act, 0);
  EXPECT_EQ(o.mode, Mode::kExact);
  EXPECT_FALSE(o.seed.has_value());
  o.Init(Words{{"nhidden", " 7 "}, {"act", "tanh"}, {"mode", "fast"}, {"seed", "-3"}, {"level", "high"},
               {"kernel", "(3, 5)"}, {"verbose", "True"}, {"big", "1099511627776"}, {"scale", "1e-300"}, {"__x__", "y"}});
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
  EXPECT_NE(init({{"num_hidden", "1000"}}).find("1000 is out of range: it must be at least 0 and below 1000"), std::string::npos);
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
  a.Init(Words{{"num_hidden", "3"}, {"learning_rate", "0.1"}, {"scale", "0.1"}, {"kernel", "[4]"}, {"act", "tanh"}, {"level", "low"}});
  const auto dict = a.__DICT__();
  EXPECT_EQ(dict.at("learning_rate"), "0.1");
  EXPECT_EQ(dict.at("kernel"), "(4,)");
  EXPECT_EQ(dict.at("act"), "tanh");
  EXPECT_EQ(dict.at("seed"), "None");
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
  EXPECT_EQ(fields[8].type, "tuple of int");
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

struct Wrong : Parameter<Wrong> {
  int a;
  UMBRA_DECLARE_PARAMETER(Wrong) {
    UMBRA_DECLARE_FIELD(a).add_enum("x", 1).add_enum("x", 2);
  }
};
UMBRA_REGISTER_PARAMETER(Wrong);
TEST(Parameter, WrongDeclarations) {
  EXPECT_NE(MessageOf([] { Wrong().Init(Words{}); }).find("exists already"), std::string::npos);
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
