// Identifiers of generated sources: no user's name hides what a source takes from the prelude.
#include "compiler/codegen/names.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "compiler/codegen/prelude.h"

namespace umbra::codegen {
namespace {

// The functions and types that a line at namespace scope defines, in the prelude's style; members that it defines
// are none.
const std::regex& Definition() {
  static const std::regex definition(
      R"(^(?:UMBRA_INLINE|UMBRA_OUTLINE|UMBRA_IN_REGISTERS) [^(]*?[\s*&](\w+)\(|^struct (\w+)|^using (\w+) =|^typedef [^(]*?\b(\w+);|^inline constexpr \w+ (\w+))");
  return definition;
}

TEST(Names, KeepClearOfThePrelude) {
  int found = 0;
  for (const EmbeddedFile& file : PreludeFiles()) {
    bool detail = false;
    for (std::size_t at = 0; at < file.text.size();) {
      const std::size_t end = std::min(file.text.find('\n', at), file.text.size());
      const std::string line(file.text.substr(at, end - at));
      at = end + 1;
      if (line == "namespace detail {" || line == "}  // namespace detail") detail = line[0] == 'n';
      std::smatch match;
      if (detail || !std::regex_search(line, match, Definition())) continue;
      for (std::size_t k = 1; k < match.size(); ++k)
        if (match[k].matched) {
          ++found;
          EXPECT_NE(Names().Make(match[k].str()), match[k].str()) << file.name << ": " << line;
        }
    }
  }
  EXPECT_GT(found, 100);
}

TEST(Names, AreUniqueAndLegal) {
  Names names;
  EXPECT_EQ(names.Make("x"), "x");
  EXPECT_EQ(names.Make("x"), "x_1");
  EXPECT_EQ(names.Make("x_1"), "x_1_1");
  EXPECT_EQ(names.Make("for"), "for_1");
  EXPECT_EQ(names.Make("p"), "p");
  EXPECT_EQ(names.Make("p11"), "p11_1") << "a value of a lane has that name";
  EXPECT_EQ(names.Make("p1x"), "p1x");
  EXPECT_EQ(names.Make("2d"), "v2d");
  EXPECT_EQ(names.Make("a.b"), "a_b");
  EXPECT_EQ(names.Make(""), "v");
}

}  // namespace
}  // namespace umbra::codegen
