// AVX-512 with VBMI: a table of 256 bytes fills four registers, and two permutes with a blend look up 64 codes at once.

#include <immintrin.h>

#include "scan.hpp"

namespace repconc {
namespace {
// The forms with a mask do not start from undefined registers, of which some compilers warn.
constexpr __mmask16 kAll = 0xffff;
}  // namespace

void half_products_avx512vbmi(const std::uint16_t* centroids, std::size_t rows, std::size_t dimension, const float* query,
                              float* products) {
    for (std::size_t row = 0; row < rows; ++row, centroids += dimension) {
        __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
        std::size_t i = 0;
        for (; i + 32 <= dimension; i += 32)
            for (std::size_t half = 0; half < 2; ++half) {
                const std::size_t place = i + 16 * half;
                const __m256i packed = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(centroids + place));
                sums[half] = _mm512_fmadd_ps(_mm512_maskz_cvtph_ps(kAll, packed), _mm512_loadu_ps(query + place), sums[half]);
            }
        for (; i < dimension; i += 16) {
            const std::size_t left = dimension - i;
            const __mmask16 valid = left >= 16 ? 0xffff : static_cast<__mmask16>((1u << left) - 1);
            const __m256i packed = _mm256_maskz_loadu_epi16(valid, centroids + i);
            sums[0] = _mm512_fmadd_ps(_mm512_maskz_cvtph_ps(kAll, packed), _mm512_maskz_loadu_ps(valid, query + i), sums[0]);
        }
        alignas(64) float lanes[16];
        _mm512_store_ps(lanes, _mm512_add_ps(sums[0], sums[1]));
        float total = 0.0f;
        for (const float lane : lanes) total += lane;
        products[row] = total;
    }
}

std::uint64_t block_sums_avx512vbmi(const std::uint8_t* codes, std::size_t M, std::size_t rows,
                                    const std::uint8_t* tables, std::uint16_t threshold, std::uint16_t* sums) {
    const __mmask64 valid = rows == kBlock ? ~__mmask64{0} : (__mmask64{1} << rows) - 1;
    const __m512i low_bytes = _mm512_set1_epi16(0x00ff);
    __m512i even = _mm512_setzero_si512();  // documents 0, 2, 4, ...: 32 sums of 16 bits
    __m512i odd = _mm512_setzero_si512();   // documents 1, 3, 5, ...
    for (std::size_t m = 0; m < M; ++m, codes += rows, tables += 256) {
        const __m512i code = _mm512_maskz_loadu_epi8(valid, codes);
        const __m512i first = _mm512_permutex2var_epi8(_mm512_loadu_si512(tables), code, _mm512_loadu_si512(tables + 64));
        const __m512i second =
            _mm512_permutex2var_epi8(_mm512_loadu_si512(tables + 128), code, _mm512_loadu_si512(tables + 192));
        const __m512i entry = _mm512_mask_blend_epi8(_mm512_movepi8_mask(code), first, second);  // by the code's top bit
        even = _mm512_add_epi16(even, _mm512_and_si512(entry, low_bytes));
        odd = _mm512_add_epi16(odd, _mm512_srli_epi16(entry, 8));
    }
    const __m512i least = _mm512_set1_epi16(static_cast<short>(threshold));
    const __mmask32 even_above = _mm512_cmpge_epu16_mask(even, least);
    const __mmask32 odd_above = _mm512_cmpge_epu16_mask(odd, least);
    const std::uint64_t above = (_pdep_u64(even_above, 0x5555555555555555) | _pdep_u64(odd_above, 0xaaaaaaaaaaaaaaaa)) & valid;
    if (above) {
        // Back into the order of the documents: even and odd sums take turns.
        const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                             5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
        const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
        _mm512_storeu_si512(sums, _mm512_permutex2var_epi16(even, low, odd));
        _mm512_storeu_si512(sums + 32, _mm512_permutex2var_epi16(even, high, odd));
    }
    return above;
}

}  // namespace repconc
