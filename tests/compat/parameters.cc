// Parameters of a program for dmlc-core, with a field type of its own.
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "dmlc/parameter.h"
#include "mshadow/tensor_blob.h"

namespace dmlc {
DMLC_DECLARE_TYPE_NAME(mshadow::TShape, "Shape(tuple)");
namespace parameter {
template <>
class FieldEntry<mshadow::TShape> : public FieldEntryBase<FieldEntry<mshadow::TShape>, mshadow::TShape> {
 public:
  FieldEntry() : expect_ndim_(0) {}
  typedef FieldEntryBase<FieldEntry<mshadow::TShape>, mshadow::TShape> Parent;
  virtual void Check(void* head) const {
    Parent::Check(head);
    const mshadow::TShape& v = this->Get(head);
    if (expect_ndim_ != 0 && v.ndim() != expect_ndim_) {
      std::ostringstream os;
      os << "value " << v << " for Parameter " << this->key_
         << " has wrong dimensions, expected dimension=" << expect_ndim_;
      throw dmlc::ParamError(os.str());
    }
  }
  inline FieldEntry<mshadow::TShape>& set_expect_ndim(mshadow::index_t ndim) {
    expect_ndim_ = ndim;
    return this->self();
  }

 private:
  mshadow::index_t expect_ndim_;
};
}  // namespace parameter
}  // namespace dmlc

struct ConvolutionParam : public dmlc::Parameter<ConvolutionParam> {
  mshadow::TShape kernel;
  mshadow::TShape stride;
  uint32_t num_filter;
  bool no_bias;
  int layout;
  dmlc::optional<int> axis;
  DMLC_DECLARE_PARAMETER(ConvolutionParam) {
    int shape[] = {1, 1};
    DMLC_DECLARE_FIELD(kernel).set_expect_ndim(2).describe("convolution kernel size: (y, x)");
    DMLC_DECLARE_FIELD(stride).set_default(mshadow::TShape(shape, shape + 2)).set_expect_ndim(2);
    DMLC_DECLARE_FIELD(num_filter).set_range(1, 100000);
    DMLC_DECLARE_FIELD(no_bias).set_default(false);
    DMLC_DECLARE_FIELD(layout)
        .add_enum("NCHW", mshadow::kNCHW)
        .add_enum("NHWC", mshadow::kNHWC)
        .set_default(mshadow::kNCHW);
    DMLC_DECLARE_FIELD(axis).set_default(dmlc::optional<int>());
    DMLC_DECLARE_ALIAS(num_filter, filters);
  }
};
DMLC_REGISTER_PARAMETER(ConvolutionParam);

// As programs have it that open both namespaces.
namespace opened {
using namespace std;
using namespace mshadow;
inline string Shapes(const map<string, TShape>& named) {
  ostringstream text;
  for (map<string, TShape>::const_iterator it = named.begin(); it != named.end(); ++it) text << it->second;
  return text.str();
}
}  // namespace opened

int main(void) {
  static_assert(dmlc::is_arithmetic<float>::value &&
                sizeof(dmlc::IfThenElseType<false, char, int>::Type) == sizeof(int));
  ConvolutionParam param;
  std::vector<std::pair<std::string, std::string> > kwargs;
  kwargs.push_back(std::make_pair("kernel", "(3, 5)"));
  kwargs.push_back(std::make_pair("filters", "32"));
  kwargs.push_back(std::make_pair("layout", "NHWC"));
  kwargs.push_back(std::make_pair("name", "conv1"));
  int failures = 0;
  const std::vector<std::pair<std::string, std::string> > unknown = param.InitAllowUnknown(kwargs);
  failures += unknown.size() != 1 || unknown[0].second != "conv1";
  failures += param.kernel != mshadow::Shape2(3, 5) || param.stride != mshadow::Shape2(1, 1);
  failures += param.num_filter != 32 || param.no_bias || param.layout != mshadow::kNHWC || param.axis.has_value();
  std::map<std::string, std::string> dict = param.__DICT__();
  failures += dict["kernel"] != "(3,5)" || dict["layout"] != "NHWC" || dict["no_bias"] != "False";
  failures += ConvolutionParam::__DOC__().find("kernel : Shape(tuple), required") == std::string::npos;
  failures += ConvolutionParam::__FIELDS__().size() != 6;
  try {
    param.Init(std::map<std::string, std::string>{{"kernel", "(3,)"}, {"num_filter", "1"}}, dmlc::parameter::kAllMatch);
    ++failures;
  } catch (const dmlc::ParamError& e) {
    failures += std::string(e.what()).find("(3,) for Parameter kernel has wrong dimensions") == std::string::npos;
  }
  std::map<std::string, mshadow::TShape> shapes;
  shapes["stride"] = param.stride;
  failures += opened::Shapes(shapes) != "(1,1)";
  DMLC_ATTRIBUTE_UNUSED int nothing = 0;
  std::printf(failures == 0 ? "parameters: done\n" : "parameters: %d wrong\n", failures);
  return failures;
}
