// The workloads that are primitives of oneDNN 2.6, each built once for as many threads as OpenMP has then.
#include <dnnl.hpp>
#ifdef BENCH_OPENMP
#include <omp.h>
#endif

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "suite.h"

namespace bench::onednn {

namespace {

using dnnl::memory;
using dnnl::primitive_attr;
using Tag = memory::format_tag;

dnnl::engine& Engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::desc Floats(const memory::dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }
memory Wrap(const memory::desc& desc, const float* p) { return {desc, Engine(), const_cast<float*>(p)}; }

struct Call {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> operands;
};

// That primitives are built for.
int Threads() {
#ifdef BENCH_OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

// Runs what `build` makes, which is kept by its result.
template <typename Build>
void RunCached(const char* name, const void* result, Build build) {
  static dnnl::stream stream(Engine());
  static std::map<std::tuple<std::string, const void*, int>, Call> calls;
  const auto key = std::make_tuple(std::string(name), result, Threads());
  auto call = calls.find(key);
  if (call == calls.end()) call = calls.emplace(key, build()).first;
  call->second.primitive.execute(stream, call->second.operands);
  stream.wait();
}

}  // namespace

void Run(const Gelu& d) {
  RunCached("gelu", d.out, [&] {
    const auto desc = Floats({d.rows, d.columns}, Tag::ab), bias = Floats({1, d.columns}, Tag::ab);
    dnnl::post_ops after;
    after.append_binary(dnnl::algorithm::binary_add, bias);
    after.append_eltwise(1, dnnl::algorithm::eltwise_gelu_tanh, 0, 0);
    primitive_attr attributes;
    attributes.set_post_ops(after);
    const dnnl::binary::primitive_desc primitive({dnnl::algorithm::binary_mul, desc, desc, desc}, attributes, Engine());
    return Call{dnnl::binary(primitive),
                {{DNNL_ARG_SRC_0, Wrap(desc, d.a)},
                 {DNNL_ARG_SRC_1, Wrap(desc, d.b)},
                 {DNNL_ARG_DST, Wrap(desc, d.out)},
                 {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, Wrap(bias, d.bias)}}};
  });
}

void Run(const Softmax& d) {
  RunCached("softmax", d.out, [&] {
    const auto desc = Floats({d.rows, d.columns}, Tag::ab);
    const dnnl::softmax_forward::primitive_desc primitive({dnnl::prop_kind::forward_inference, desc, 1}, Engine());
    return Call{dnnl::softmax_forward(primitive), {{DNNL_ARG_SRC, Wrap(desc, d.x)}, {DNNL_ARG_DST, Wrap(desc, d.out)}}};
  });
}

void Run(const SoftmaxGradient& d) {
  RunCached("softmax gradient", d.out, [&] {
    const auto desc = Floats({d.rows, d.columns}, Tag::ab);
    const dnnl::softmax_forward::primitive_desc forward({dnnl::prop_kind::forward_training, desc, 1}, Engine());
    const dnnl::softmax_backward::primitive_desc primitive({desc, desc, 1}, Engine(), forward);
    return Call{dnnl::softmax_backward(primitive),
                {{DNNL_ARG_DST, Wrap(desc, d.y)},
                 {DNNL_ARG_DIFF_DST, Wrap(desc, d.g)},
                 {DNNL_ARG_DIFF_SRC, Wrap(desc, d.out)}}};
  });
}

void Run(const LayerNorm& d) {
  RunCached("layernorm", d.out, [&] {
    const auto desc = Floats({d.rows, d.columns}, Tag::ab);
    const dnnl::layer_normalization_forward::primitive_desc primitive(
        {dnnl::prop_kind::forward_inference, desc, 1e-5f, dnnl::normalization_flags::none}, Engine());
    return Call{dnnl::layer_normalization_forward(primitive),
                {{DNNL_ARG_SRC, Wrap(desc, d.x)}, {DNNL_ARG_DST, Wrap(desc, d.out)}}};
  });
}

void Run(const LayerNormGradient& d) {
  RunCached("layernorm gradient", d.out, [&] {
    const auto desc = Floats({d.rows, d.columns}, Tag::ab), row = Floats({d.rows}, Tag::a);
    const dnnl::layer_normalization_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, desc, row, 1e-5f, dnnl::normalization_flags::none}, Engine());
    const dnnl::layer_normalization_backward::primitive_desc primitive(
        {dnnl::prop_kind::backward_data, desc, desc, row, 1e-5f, dnnl::normalization_flags::none}, Engine(), forward);
    return Call{dnnl::layer_normalization_backward(primitive),
                {{DNNL_ARG_SRC, Wrap(desc, d.x)},
                 {DNNL_ARG_DIFF_DST, Wrap(desc, d.g)},
                 {DNNL_ARG_MEAN, Wrap(row, d.mean)},
                 {DNNL_ARG_VARIANCE, Wrap(row, d.variance)},
                 {DNNL_ARG_DIFF_SRC, Wrap(desc, d.out)}}};
  });
}

void Run(const Dense& d) {
  RunCached("dense", d.out, [&] {
    const auto x = Floats({d.rows, d.inner}, Tag::ab), w = Floats({d.inner, d.columns}, Tag::ab),
               bias = Floats({1, d.columns}, Tag::ab), out = Floats({d.rows, d.columns}, Tag::ab);
    dnnl::post_ops after;
    after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    primitive_attr attributes;
    attributes.set_post_ops(after);
    const dnnl::matmul::primitive_desc primitive({x, w, bias, out}, attributes, Engine());
    return Call{dnnl::matmul(primitive),
                {{DNNL_ARG_SRC, Wrap(x, d.x)},
                 {DNNL_ARG_WEIGHTS, Wrap(w, d.w)},
                 {DNNL_ARG_BIAS, Wrap(bias, d.bias)},
                 {DNNL_ARG_DST, Wrap(out, d.out)}}};
  });
}

void Run(const Scores& d) {
  RunCached("scores", d.out, [&] {
    const auto q = Floats({d.batch, d.rows, d.inner}, Tag::abc), k = Floats({d.batch, d.inner, d.columns}, Tag::acb),
               out = Floats({d.batch, d.rows, d.columns}, Tag::abc);
    primitive_attr attributes;
    attributes.set_output_scales(0, {d.scale});
    const dnnl::matmul::primitive_desc primitive({q, k, out}, attributes, Engine());
    return Call{dnnl::matmul(primitive),
                {{DNNL_ARG_SRC, Wrap(q, d.q)}, {DNNL_ARG_WEIGHTS, Wrap(k, d.k)}, {DNNL_ARG_DST, Wrap(out, d.out)}}};
  });
}

namespace {
dnnl::pooling_forward::desc Pool(dnnl::prop_kind kind, const memory::desc& in, const memory::desc& out) {
  return {kind, dnnl::algorithm::pooling_max, in, out, {2, 2}, {2, 2}, {0, 0}, {0, 0}};
}
}  // namespace

void Run(const MaxPool& d) {
  RunCached("max pool", d.out, [&] {
    const auto in = Floats({d.n, d.c, d.h, d.w}, Tag::nchw), out = Floats({d.n, d.c, d.h / 2, d.w / 2}, Tag::nchw);
    const dnnl::pooling_forward::primitive_desc primitive(Pool(dnnl::prop_kind::forward_inference, in, out), Engine());
    return Call{dnnl::pooling_forward(primitive), {{DNNL_ARG_SRC, Wrap(in, d.x)}, {DNNL_ARG_DST, Wrap(out, d.out)}}};
  });
}

// The backward primitive reads which element of a window was the largest from a workspace, which the
// forward one fills once.
void Run(const Unpool& d) {
  RunCached("max unpool", d.out, [&] {
    const auto in = Floats({d.n, d.c, d.h, d.w}, Tag::nchw), out = Floats({d.n, d.c, d.h / 2, d.w / 2}, Tag::nchw);
    const dnnl::pooling_forward::primitive_desc forward(Pool(dnnl::prop_kind::forward_training, in, out), Engine());
    const memory workspace(forward.workspace_desc(), Engine()), pooled(out, Engine());
    dnnl::stream stream(Engine());
    dnnl::pooling_forward(forward).execute(
        stream, {{DNNL_ARG_SRC, Wrap(in, d.x)}, {DNNL_ARG_DST, pooled}, {DNNL_ARG_WORKSPACE, workspace}});
    stream.wait();
    const dnnl::pooling_backward::primitive_desc primitive(
        {dnnl::algorithm::pooling_max, in, out, {2, 2}, {2, 2}, {0, 0}, {0, 0}}, Engine(), forward);
    return Call{
        dnnl::pooling_backward(primitive),
        {{DNNL_ARG_DIFF_DST, Wrap(out, d.g)}, {DNNL_ARG_DIFF_SRC, Wrap(in, d.out)}, {DNNL_ARG_WORKSPACE, workspace}}};
  });
}

void Run(const Concat& d) {
  RunCached("concat", d.out, [&] {
    const auto part = Floats({d.rows, d.columns}, Tag::ab), out = Floats({d.rows, d.columns * 4}, Tag::ab);
    const dnnl::concat::primitive_desc primitive(out, 1, {part, part, part, part}, Engine());
    Call call{dnnl::concat(primitive), {{DNNL_ARG_DST, Wrap(out, d.out)}}};
    for (int k = 0; k < 4; ++k) call.operands.emplace(DNNL_ARG_MULTIPLE_SRC + k, Wrap(part, d.x[k]));
    return call;
  });
}

}  // namespace bench::onednn
