// Writes the suite in Halide 14 with schedules for one thread: an object and a header, whose path without
// extension is the argument.
#include <Halide.h>

#include <string>
#include <vector>

using namespace Halide;

namespace {

std::vector<Module> g_modules;
const Target g_target = get_host_target().with_feature(Target::NoAsserts);
const int kWidth = g_target.natural_vector_size<float>();
const int kPartials = 4 * kWidth;
Var i("i"), r("r"), l("l");

void Keep(const std::string& name, Func result, const std::vector<Argument>& arguments) {
  g_modules.push_back(result.compile_to_module(arguments, "halide_" + name, g_target));
}

// The join of f(k) for k below `extent`, a multiple of kPartials, by whole packets, for every row of `out`.
template <typename F>
Func Reduce(Func out, Var row, Expr extent, bool maximum, F f) {
  Func part("part"), total("total");
  RDom k(0, extent / kPartials), lane(0, kPartials);
  const auto join = [&](Expr a, Expr b) { return maximum ? max(a, b) : a + b; };
  const Expr first = maximum ? Float(32).min() : Expr(0.0f);
  part(l, row) = first;
  part(l, row) = join(part(l, row), f(k * kPartials + l));
  total(row) = first;
  total(row) = join(total(row), part(lane, row));
  part.compute_at(out, row).vectorize(l, kWidth).bound(l, 0, kPartials).unroll(l);
  part.update().reorder(l, k).vectorize(l, kWidth).unroll(l);
  total.compute_at(out, row);
  total.update().unroll(lane);
  return total;
}

void Elementwise() {
  {
    ImageParam a(Float(32), 1), b(Float(32), 1), c(Float(32), 1);
    Param<float> s;
    Func out;
    out(i) = a(i) * b(i) + c(i) * s;
    out.vectorize(i, kWidth);
    Keep("triad", out, {a, b, c, s});
  }
  {
    ImageParam a(Float(32), 2), b(Float(32), 2), bias(Float(32), 1);
    Func out;
    const Expr t = a(i, r) * b(i, r) + bias(i);
    out(i, r) = t / (1 + exp(-1.5957691216f * (t + 0.044715f * t * t * t)));
    out.vectorize(i, 2 * kWidth);
    Keep("gelu", out, {a, b, bias});
  }
  {
    ImageParam p(Float(32), 1), m(Float(32), 1), v(Float(32), 1), g(Float(32), 1);
    Param<float> rate, beta1, beta2, epsilon;
    Func out;
    const Expr m1 = beta1 * m(i) + (1 - beta1) * g(i), v1 = beta2 * v(i) + (1 - beta2) * g(i) * g(i);
    out(i) = Tuple(p(i) - rate * m1 / (sqrt(v1) + epsilon), m1, v1);
    out.vectorize(i, kWidth);
    Keep("adam", out, {p, m, v, g, rate, beta1, beta2, epsilon});
  }
  {
    ImageParam spot(Float(32), 1), strike(Float(32), 1), time(Float(32), 1);
    Param<float> rate, volatility;
    Func out;
    const Expr spread = volatility * sqrt(time(i));
    const Expr d1 = (log(spot(i) / strike(i)) + (rate + 0.5f * volatility * volatility) * time(i)) / spread;
    const Expr d2 = d1 - spread;
    out(i) = spot(i) * (0.5f + 0.5f * erf(d1 * 0.70710678f)) -
             strike(i) * exp(-rate * time(i)) * (0.5f + 0.5f * erf(d2 * 0.70710678f));
    out.vectorize(i, 2 * kWidth);
    Keep("black_scholes", out, {spot, strike, time, rate, volatility});
  }
  {
    ImageParam a(Float(16), 1), b(Float(32), 1), c(Float(16), 1);
    Func out;
    out(i) = cast<float>(a(i)) * b(i) + cast<float>(c(i));
    out.vectorize(i, kWidth);
    Keep("mixed", out, {a, b, c});
  }
  {
    ImageParam x(Int(8), 1), y(Int(8), 1);
    Param<int> s;
    Func out;
    out(i) = cast<std::int8_t>(cast<std::int16_t>(x(i)) * cast<std::int16_t>(s) + y(i));
    out.vectorize(i, 4 * kWidth);
    Keep("saxpy8", out, {x, y, s});
  }
}

void OfRows() {
  {
    ImageParam x(Float(32), 2);
    Func out, e;
    Func most = Reduce(out, r, x.width(), true, [&](Expr k) { return x(k, r); });
    e(i, r) = exp(x(i, r) - most(r));
    Func sum = Reduce(out, r, x.width(), false, [&](Expr k) { return e(k, r); });
    Func scale;
    scale(r) = 1 / sum(r);
    out(i, r) = e(i, r) * scale(r);
    scale.compute_at(out, r);
    e.compute_at(out, r).vectorize(i, 2 * kWidth);
    out.vectorize(i, kWidth);
    Keep("softmax", out, {x});
  }
  {
    ImageParam x(Float(32), 2);
    Func out, mean, scale;
    const Expr inverse = 1.0f / x.width();
    Func sum = Reduce(out, r, x.width(), false, [&](Expr k) { return x(k, r); });
    mean(r) = sum(r) * inverse;
    Func squares = Reduce(out, r, x.width(), false, [&](Expr k) { return (x(k, r) - mean(r)) * (x(k, r) - mean(r)); });
    scale(r) = 1 / sqrt(squares(r) * inverse + 1e-5f);
    out(i, r) = (x(i, r) - mean(r)) * scale(r);
    mean.compute_at(out, r);
    scale.compute_at(out, r);
    out.vectorize(i, kWidth);
    Keep("layernorm", out, {x});
  }
  {
    ImageParam x(Float(32), 2);
    Func out;
    Func most = Reduce(out, r, x.width(), true, [&](Expr k) { return x(k, r); });
    Func sum = Reduce(out, r, x.width(), false, [&](Expr k) { return exp(x(k, r) - most(r)); });
    out(r) = most(r) + log(sum(r));
    Keep("log_sum_exp", out, {x});
  }
  {
    ImageParam y(Float(32), 2), g(Float(32), 2);
    Func out;
    Func sum = Reduce(out, r, y.width(), false, [&](Expr k) { return y(k, r) * g(k, r); });
    out(i, r) = y(i, r) * (g(i, r) - sum(r));
    out.vectorize(i, kWidth);
    Keep("softmax_gradient", out, {y, g});
  }
  {
    ImageParam x(Float(32), 2), g(Float(32), 2), mean(Float(32), 1), variance(Float(32), 1);
    Func out, scale, total, product;
    const Expr inverse = 1.0f / x.width();
    const auto normal = [&](Expr k) { return (x(k, r) - mean(r)) * scale(r); };
    scale(r) = 1 / sqrt(variance(r) + 1e-5f);
    Func sum = Reduce(out, r, x.width(), false, [&](Expr k) { return g(k, r); });
    Func products = Reduce(out, r, x.width(), false, [&](Expr k) { return g(k, r) * normal(k); });
    total(r) = sum(r) * inverse;
    product(r) = products(r) * inverse;
    out(i, r) = scale(r) * (g(i, r) - total(r) - normal(i) * product(r));
    for (Func f : {scale, total, product}) f.compute_at(out, r);
    out.vectorize(i, kWidth);
    Keep("layernorm_gradient", out, {x, g, mean, variance});
  }
}

void Images() {
  Var x("x"), y("y"), c("c"), n("n"), kx("kx"), ky("ky");
  {
    ImageParam in(Float(32), 3);  // pixels, channels, pictures
    Func out, part, mean, part2;
    RDom k(0, in.width() / kWidth, 0, in.dim(2).extent()), lane(0, kWidth);
    const Expr inverse = 1.0f / (in.width() * in.dim(2).extent());
    const Expr element = in(k.x * kWidth + l, c, k.y);
    part(l, c) = 0.0f;
    part(l, c) += element;
    mean(c) = 0.0f;
    mean(c) += part(lane, c) * inverse;
    part2(l, c) = 0.0f;
    part2(l, c) += (element - mean(c)) * (element - mean(c));
    Func variance;
    variance(c) = 0.0f;
    variance(c) += part2(lane, c) * inverse;
    out(c) = Tuple(mean(c), variance(c));
    for (Func f : {mean, variance}) f.compute_at(out, c);
    for (Func f : {part, part2}) {
      f.compute_at(out, c).vectorize(l, kWidth).bound(l, 0, kWidth);
      f.update().reorder(l, k.x, k.y).vectorize(l, kWidth).unroll(k.x, 4);
    }
    Keep("channels", out, {in});
  }
  {
    ImageParam in(Float(32), 4);
    Func out;
    out(x, y, n, kx, ky, c) = in(x + kx, y + ky, c, n);
    out.vectorize(x, kWidth);
    Keep("patches", out, {in});
  }
  {
    ImageParam in(Float(32), 4);
    Func out;
    out(x, y, c, n) = max(max(in(2 * x, 2 * y, c, n), in(2 * x + 1, 2 * y, c, n)),
                          max(in(2 * x, 2 * y + 1, c, n), in(2 * x + 1, 2 * y + 1, c, n)));
    out.vectorize(x, kWidth);
    Keep("max_pool", out, {in});
  }
  {
    ImageParam in(Float(32), 4), pooled(Float(32), 4), g(Float(32), 4);
    Func out;
    Var half("half"), odd("odd");
    out(odd, half, y, c, n) =
        select(in(2 * half + odd, y, c, n) == pooled(half, y / 2, c, n), g(half, y / 2, c, n), 0.0f);
    out.bound(odd, 0, 2).unroll(odd).vectorize(half, kWidth);
    Keep("max_unpool", out, {in, pooled, g});
  }
}

void Matrices() {
  {
    ImageParam a(Float(32), 2), b(Float(32), 2);
    Var x("x"), y("y"), xo("xo"), yo("yo"), xi("xi"), yi("yi");
    Func tile, out;
    tile(x, y) = a(y, x);
    out(x, y) = tile(x, y) * 2.0f + b(x, y);
    out.tile(x, y, xo, yo, xi, yi, kWidth, kWidth).vectorize(xi).unroll(yi);
    tile.compute_at(out, xo).reorder_storage(y, x).reorder(y, x).vectorize(y).unroll(x);
    Keep("transpose", out, {a, b});
  }
  {
    std::vector<ImageParam> in;
    for (int part = 0; part < 4; ++part) in.emplace_back(Float(32), 2);
    Func out;
    Var part("part");
    out(i, part, r) = select(part == 0, in[0](i, r), part == 1, in[1](i, r), part == 2, in[2](i, r), in[3](i, r));
    out.bound(part, 0, 4).unroll(part).vectorize(i, kWidth);
    Keep("concat", out, {in[0], in[1], in[2], in[3]});
  }
  {
    ImageParam index(Float(32), 1), in(Float(32), 2);
    Func out;
    out(i, r) = in(i, clamp(cast<int>(index(r)), 0, in.height() - 1));
    out.vectorize(i, kWidth);
    Keep("take", out, {index, in});
  }
}

}  // namespace

int main(int, char** argv) {
  Elementwise();
  OfRows();
  Images();
  Matrices();
  const std::string path = argv[1];
  link_modules("halide_kernels", g_modules)
      .compile({{OutputFileType::object, path + ".o"}, {OutputFileType::c_header, path + ".h"}});
}
