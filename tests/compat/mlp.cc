// A network of one hidden layer, trained to tell points inside a circle from those outside.
#include <cmath>
#include <cstdio>

#include "mshadow/random.h"
#include "mshadow/tensor.h"

using namespace mshadow;
using namespace mshadow::expr;

struct sigmoid {
  MSHADOW_XINLINE static real_t Map(real_t a) { return 1.0f / (1.0f + std::exp(-a)); }
};

template <typename xpu>
class Net {
 public:
  Net(int batch, int in, int hidden, int out) : rnd(7) {
    ninput.Resize(Shape2(batch, in));
    nhidden.Resize(Shape2(batch, hidden));
    nhiddenbak.Resize(nhidden.shape_);
    nout.Resize(Shape2(batch, out));
    hbias.Resize(Shape1(hidden));
    ghbias.Resize(hbias.shape_);
    obias.Resize(Shape1(out));
    gobias.Resize(obias.shape_);
    hbias = 0.0f;
    obias = 0.0f;
    Wi2h.Resize(Shape2(in, hidden));
    gWi2h.Resize(Wi2h.shape_);
    Wh2o.Resize(Shape2(hidden, out));
    gWh2o.Resize(Wh2o.shape_);
    rnd.SampleGaussian(&Wi2h, 0, 1.0f);
    rnd.SampleGaussian(&Wh2o, 0, 0.3f);
  }
  void Forward(const Tensor<cpu, 2, real_t>& inbatch, Tensor<cpu, 2, real_t> oubatch) {
    const index_t batch = ninput.size(0);
    Copy(ninput, inbatch, ninput.stream_);
    nhidden = dot(ninput, Wi2h);
    nhidden += repmat(hbias, batch);
    nhidden = F<sigmoid>(nhidden);
    nout = dot(nhidden, Wh2o);
    nout += repmat(obias, batch);
    Softmax(nout, nout);
    Copy(oubatch, nout, nout.stream_);
  }
  void Backprop(const Tensor<cpu, 2, real_t>& gradout) {
    Copy(nout, gradout, nout.stream_);
    gobias = sum_rows(nout);
    gWh2o = dot(nhidden.T(), nout);
    nhiddenbak = dot(nout, Wh2o.T());
    nhidden = nhidden * (1.0f - nhidden) * nhiddenbak;
    ghbias = sum_rows(nhidden);
    gWi2h = dot(ninput.T(), nhidden);
  }
  void Update(float eta) {
    Wi2h -= eta * gWi2h;
    Wh2o -= eta * gWh2o;
    hbias -= eta * ghbias;
    obias -= eta * gobias;
  }

 private:
  Random<xpu, real_t> rnd;
  TensorContainer<xpu, 2, real_t> ninput, nhidden, nhiddenbak, nout;
  TensorContainer<xpu, 1, real_t> hbias, obias, ghbias, gobias;
  TensorContainer<xpu, 2, real_t> Wi2h, Wh2o, gWi2h, gWh2o;
};

int main(void) {
  InitTensorEngine<cpu>();
  const int batch = 100;
  Net<cpu> net(batch, 2, 16, 2);
  Random<cpu, real_t> rnd(1);
  TensorContainer<cpu, 2, real_t> x(Shape2(batch, 2)), p(Shape2(batch, 2));
  TensorContainer<cpu, 1, real_t> label((Shape1(batch)));
  int right = 0;
  for (int step = 0; step < 1500; ++step) {
    rnd.SampleUniform(&x, -1.0f, 1.0f);
    for (int i = 0; i < batch; ++i) label[i] = x[i][0] * x[i][0] + x[i][1] * x[i][1] < 0.6f;
    net.Forward(x, p);
    if (step >= 1400)
      for (int i = 0; i < batch; ++i) right += (p[i][1] > p[i][0]) == (label[i] == 1.0f);
    SoftmaxGrad(p, p, label);
    p *= 1.0f / batch;
    net.Backprop(p);
    net.Update(2.0f);
  }
  std::printf("mlp: %d of 10000 right\n", right);
  ShutdownTensorEngine<cpu>();
  return right > 9300 ? 0 : 1;
}
