// Files that are cut short or altered: an error with a message, never a crash.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "compiler/codegen/source.h"
#include "compiler/driver/backend.h"
#include "compiler/driver/lower.h"
#include "compiler/graph/graph.h"
#include "runtime/object_loader.h"
#include "tools/umbra/npy.h"
#include "umbra/error.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

TEST(Npy, RoundTripsAndRejectsEveryCut) {
  for (DType type : {DType::kFloat32, DType::kFloat64, DType::kInt32}) {
    tools::Array array = tools::MakeArray(type, {3, 5});
    for (std::size_t k = 0; k < array.bytes.size(); ++k) array.bytes[k] = static_cast<char>(k);
    const std::string file = tools::FormatNpy(array);
    EXPECT_EQ((file.size() - array.bytes.size()) % 64, 0u);
    const tools::Array read = tools::ParseNpy(file, "file");
    EXPECT_EQ(read.dtype, type);
    EXPECT_EQ(read.shape, array.shape);
    EXPECT_EQ(read.bytes, array.bytes);
    for (std::size_t length = 0; length < file.size(); ++length)
      EXPECT_THROW(tools::ParseNpy(file.substr(0, length), "file"), Error) << length;
  }
}

TEST(Npy, HostileHeaders) {
  const auto with = [](const std::string& dictionary) {
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(dictionary.size());
    file += '\0';
    return file + dictionary;
  };
  for (const char* bad :
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "{'descr': '<f4'", "{", ""})
    EXPECT_THROW(tools::ParseNpy(with(bad), "file"), Error) << bad;
}

TEST(ObjectLoader, RunsAndSurvivesDamage) {
  const auto graph = graph::ParseText("kernel k(x: f32[n]) -> (y: f32[n]) { y = erf(exp(x)) }")[0];
  const codegen::Source source =
      codegen::Generate(Lower(*graph), {codegen::Target::kSse2, codegen::Spelling::kPackets, {}});
  const ObjectCode object = ClangBackend().Compile(source, codegen::Target::kSse2);
  const std::string bytes(object.bytes.begin(), object.bytes.end());
  const runtime::KernelCode code = runtime::LoadObject(bytes, source.functions[0]);
  float x[5] = {0, -1, -2, -3, -4}, y[5] = {};
  void* data[] = {x, y};
  const long long stride[] = {0, 1, 0, 1}, extent[] = {1, 5};
  const umbra_args args{data, stride, extent, nullptr, nullptr, 0};
  code.function(&args, 0, 1);
  EXPECT_NEAR(y[0], 0.842701f, 1e-6);
  EXPECT_THROW(runtime::LoadObject(bytes, "another"), Error);
  int refused = 0;
  for (std::size_t length = 0; length < bytes.size(); length += 7) {
    try {
      runtime::LoadObject(bytes.substr(0, length), source.functions[0]);
    } catch (const Error&) { ++refused; }
  }
  EXPECT_GT(refused, 0);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::string altered = bytes;
    altered[at] = static_cast<char>(altered[at] ^ 0xff);
    try {
      runtime::LoadObject(altered, source.functions[0]);  // mapped or refused; altered code is not called
    } catch (const Error&) { ++refused; }
  }
}

}  // namespace
}  // namespace umbra
