// A program that uses a GPU, and says what stops it.
#include <umbra/dynamic_tensor.h>
#include <umbra/tensor.h>

#include <cstdio>

int main() {
  using namespace umbra;
  try {
    Stream<gpu> stream;
    TensorContainer<cpu, 2> x(Shape2(30, 70), 2.5f), y(Shape2(30, 70), 0.0f);
    TensorContainer<gpu, 2> on_gpu(Shape2(30, 70));
    on_gpu.set_stream(&stream);
    Copy(on_gpu, x, &stream);
    const cuda::Event copied = stream.Record();
    Copy(y, on_gpu, &stream);
    stream.Wait();
    std::printf("%d GPUs, %.1f\n", cuda::DeviceCount(), static_cast<double>(y[29][69]));
    return copied.IsDone() && y[29][69] == 2.5f ? 0 : 1;
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return 2;
  }
}
