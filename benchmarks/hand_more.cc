// Gradients, index maps and mixed types by hand, with intrinsics where a loop would not vectorise well.
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "suite.h"

namespace bench::hand {

void Run(const LogSumExp& d) {
  for (Size r = 0; r < d.rows; ++r) {
    const float* __restrict x = d.x + r * d.columns;
    float largest = x[0];
    for (Size i = 0; i < d.columns; ++i) largest = x[i] > largest ? x[i] : largest;
    float sum = 0;
    for (Size i = 0; i < d.columns; ++i) sum += expf(x[i] - largest);
    d.out[r] = largest + logf(sum);
  }
}

void Run(const SoftmaxGradient& d) {
  for (Size r = 0; r < d.rows; ++r) {
    const float* __restrict y = d.y + r * d.columns, * __restrict g = d.g + r * d.columns;
    float* __restrict out = d.out + r * d.columns;
    float sum = 0;
    for (Size i = 0; i < d.columns; ++i) sum += y[i] * g[i];
    for (Size i = 0; i < d.columns; ++i) out[i] = y[i] * (g[i] - sum);
  }
}

void Run(const LayerNormGradient& d) {
  const float inverse = 1.0f / static_cast<float>(d.columns);
  for (Size r = 0; r < d.rows; ++r) {
    const float* __restrict x = d.x + r * d.columns, * __restrict g = d.g + r * d.columns;
    float* __restrict out = d.out + r * d.columns;
    const float mean = d.mean[r], scale = 1 / sqrtf(d.variance[r] + 1e-5f);
    float sum = 0, product = 0;
    for (Size i = 0; i < d.columns; ++i) {
      sum += g[i];
      product += g[i] * ((x[i] - mean) * scale);
    }
    sum *= inverse;
    product *= inverse;
    for (Size i = 0; i < d.columns; ++i) out[i] = scale * (g[i] - sum - (x[i] - mean) * scale * product);
  }
}

void Run(const Patches& d) {
  const Size rows = d.h - 2, columns = d.w - 2;
  for (Size c = 0; c < d.c; ++c)
    for (Size ky = 0; ky < 3; ++ky)
      for (Size kx = 0; kx < 3; ++kx) {
        float* __restrict out = d.out + (c * 9 + ky * 3 + kx) * d.n * rows * columns;
        for (Size n = 0; n < d.n; ++n)
          for (Size y = 0; y < rows; ++y, out += columns)
            std::memcpy(out, d.x + ((n * d.all + c) * d.h + y + ky) * d.w + kx, static_cast<std::size_t>(columns) * 4);
      }
}

void Run(const MaxPool& d) {
  for (Size row = 0; row < d.n * d.c * d.h / 2; ++row) {
    const float* __restrict top = d.x + row * 2 * d.w, * __restrict bottom = top + d.w;
    float* __restrict out = d.out + row * (d.w / 2);
    for (Size i = 0; i < d.w / 2; ++i)
      out[i] = std::max(std::max(top[2 * i], top[2 * i + 1]), std::max(bottom[2 * i], bottom[2 * i + 1]));
  }
}

void Run(const Unpool& d) {
  for (Size row = 0; row < d.n * d.c * d.h / 2; ++row) {
    const float* __restrict pooled = d.pooled + row * (d.w / 2), * __restrict g = d.g + row * (d.w / 2);
    for (Size y = 0; y < 2; ++y) {
      const float* __restrict x = d.x + (row * 2 + y) * d.w;
      float* __restrict out = d.out + (row * 2 + y) * d.w;
      Size i = 0;
#if defined(__AVX512F__)
      const __m512i twice = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
      for (; i + 16 <= d.w; i += 16) {
        const __m512 most = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(_mm256_loadu_ps(pooled + i / 2)));
        const __m512 part = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(_mm256_loadu_ps(g + i / 2)));
        const __mmask16 is_most = _mm512_cmp_ps_mask(_mm512_loadu_ps(x + i), most, _CMP_EQ_OQ);
        _mm512_storeu_ps(out + i, _mm512_maskz_mov_ps(is_most, part));
      }
#endif
      for (; i < d.w; ++i) out[i] = x[i] == pooled[i / 2] ? g[i / 2] : 0;
    }
  }
}

void Run(const Overlapping& d) {
  const Size rows = d.Windows(d.h), columns = d.Windows(d.w);
  for (Size p = 0; p < d.n * d.c; ++p) {
    const float* x = d.x + p * d.h * d.w;
    float* out = d.out + p * d.h * d.w;
    std::memset(out, 0, static_cast<std::size_t>(d.h * d.w) * 4);
    for (Size r = 0; r < rows; ++r)
      for (Size y = 0; y < 3; ++y)
        for (Size k = 0; k < 3; ++k) {
          const float* __restrict in = x + (2 * r + y) * d.w + k, * __restrict most = d.pooled + (p * rows + r) * columns, * __restrict g = d.g + (p * rows + r) * columns;
          float* __restrict to = out + (2 * r + y) * d.w + k;
          for (Size i = 0; i < columns; ++i) to[2 * i] += in[2 * i] == most[i] ? g[i] : 0;
        }
  }
}

void Run(const Opaque& d) {
  Size i = 0;
#if defined(__AVX512F__)
  const __m512i order = _mm512_setr_epi32(2, 1, 0, 16, 5, 4, 3, 17, 8, 7, 6, 18, 11, 10, 9, 19);
  for (; i + 6 <= d.n; i += 4) {  // the load has four numbers more than the pixels
    const __m512 x = _mm512_loadu_ps(d.x + 3 * i), alpha = _mm512_castps128_ps512(_mm_loadu_ps(d.alpha + i));
    _mm512_storeu_ps(d.out + 4 * i, _mm512_permutex2var_ps(x, order, alpha));
  }
#endif
  for (; i < d.n; ++i) {
    for (Size c = 0; c < 3; ++c) d.out[4 * i + c] = d.x[3 * i + 2 - c];
    d.out[4 * i + 3] = d.alpha[i];
  }
}

void Run(const ComplexProduct& d) {
  Size i = 0;
#if defined(__AVX512F__)
  for (; i + 8 <= d.n; i += 8) {
    const __m512 a = _mm512_loadu_ps(d.a + 2 * i), b = _mm512_loadu_ps(d.b + 2 * i);
    const __m512 turned = _mm512_mul_ps(_mm512_permute_ps(a, 0xb1), _mm512_movehdup_ps(b));
    _mm512_storeu_ps(d.out + 2 * i, _mm512_fmaddsub_ps(a, _mm512_moveldup_ps(b), turned));
  }
#endif
  for (; i < d.n; ++i) {
    const float re = d.a[2 * i] * d.b[2 * i] - d.a[2 * i + 1] * d.b[2 * i + 1];
    d.out[2 * i + 1] = d.a[2 * i] * d.b[2 * i + 1] + d.a[2 * i + 1] * d.b[2 * i];
    d.out[2 * i] = re;
  }
}

void Run(const Concat& d) {
  for (Size r = 0; r < d.rows; ++r)
    for (Size k = 0; k < 4; ++k)
      std::memcpy(d.out + (r * 4 + k) * d.columns, d.x[k] + r * d.columns, static_cast<std::size_t>(d.columns) * 4);
}

void Run(const Take& d) {
  for (Size i = 0; i < d.count; ++i) {
    const Size row = std::clamp(static_cast<Size>(d.index[i]), Size{0}, d.rows - 1);
    std::memcpy(d.out + i * d.columns, d.x + row * d.columns, static_cast<std::size_t>(d.columns) * 4);
  }
}

void Run(const Mixed& d) {
  Size i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= d.n; i += 16) {
    const __m512 a = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(d.a + i)));
    const __m512 c = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(d.c + i)));
    _mm512_storeu_ps(d.out + i, _mm512_fmadd_ps(a, _mm512_loadu_ps(d.b + i), c));
  }
#endif
  for (; i < d.n; ++i) d.out[i] = _cvtsh_ss(d.a[i]) * d.b[i] + _cvtsh_ss(d.c[i]);
}

void Run(const Quantized& d) {
  constexpr Size kRows = 8;
  for (Size r = 0; r < d.rows; ++r) std::fill_n(d.out + r * d.all, d.columns, 0.0f);
  for (Size k = 0; k < d.inner; k += kRows)
    for (Size r = 0; r < d.rows; ++r) {
      const float* __restrict x = d.x + r * d.inner + k;
      const std::int8_t* __restrict w = d.w + k * d.all;
      float* __restrict out = d.out + r * d.all;
      for (Size j = 0; j < d.columns; ++j) {
        float sum = out[j];
        for (Size i = 0; i < kRows; ++i) sum += x[i] * static_cast<float>(w[i * d.all + j]);
        out[j] = sum;
      }
    }
  for (Size r = 0; r < d.rows; ++r)
    for (Size j = 0; j < d.columns; ++j) d.out[r * d.all + j] *= d.scale[j];
}

void Run(const Saxpy8& d) {
  Size i = 0;
#if defined(__AVX512BW__)
  const __m512i s = _mm512_set1_epi16(static_cast<short>(d.s)), low_byte = _mm512_set1_epi16(255);
  for (; i + 64 <= d.n; i += 64) {
    const __m512i x = _mm512_loadu_si512(d.x + i), y = _mm512_loadu_si512(d.y + i);
    const __m512i even = _mm512_and_si512(_mm512_mullo_epi16(x, s), low_byte);
    const __m512i odd = _mm512_slli_epi16(_mm512_mullo_epi16(_mm512_srli_epi16(x, 8), s), 8);
    _mm512_storeu_si512(d.out + i, _mm512_add_epi8(_mm512_or_si512(even, odd), y));
  }
#endif
  for (; i < d.n; ++i) d.out[i] = static_cast<std::int8_t>(d.x[i] * d.s + d.y[i]);
}

void Run(const Planes& d) {
  Size i = 0;
#if defined(__AVX512F__)
  // Four pixels are twelve bytes: byte c, c + 3, c + 6 and c + 9 of each as one lane after the other.
  const __m128i pick[3] = {_mm_setr_epi8(0, 3, 6, 9, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
                           _mm_setr_epi8(1, 4, 7, 10, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
                           _mm_setr_epi8(2, 5, 8, 11, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1)};
  for (; i + 18 <= d.n; i += 16) {  // the last load has four bytes more than the pixels
    __m128i four[4];
    for (Size k = 0; k < 4; ++k) four[k] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(d.x + (i + 4 * k) * 3));
    for (Size c = 0; c < 3; ++c) {
      const __m128i low = _mm_unpacklo_epi32(_mm_shuffle_epi8(four[0], pick[c]), _mm_shuffle_epi8(four[1], pick[c]));
      const __m128i high = _mm_unpacklo_epi32(_mm_shuffle_epi8(four[2], pick[c]), _mm_shuffle_epi8(four[3], pick[c]));
      const __m512 x = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_unpacklo_epi64(low, high)));
      _mm512_storeu_ps(d.out + c * d.all + i, _mm512_mul_ps(x, _mm512_set1_ps(d.scale[c])));
    }
  }
#endif
  for (; i < d.n; ++i)
    for (Size c = 0; c < 3; ++c) d.out[c * d.all + i] = static_cast<float>(d.x[i * 3 + c]) * d.scale[c];
}

void Run(const Sum500& d) {
  constexpr Size kBlock = 4096;
  for (Size first = 0; first < d.n; first += kBlock) {
    const Size count = std::min(kBlock, d.n - first);
    float* __restrict out = d.out + first;
    for (int k = 0; k + 4 <= Sum500::kInputs; k += 4) {
      const float* __restrict a = d.x[k] + first, * __restrict b = d.x[k + 1] + first, * __restrict c = d.x[k + 2] + first, * __restrict e = d.x[k + 3] + first;
      for (Size i = 0; i < count; ++i) out[i] = (k > 0 ? out[i] : 0) + a[i] + b[i] + c[i] + e[i];
    }
  }
}

}  // namespace bench::hand
